/** Addresses that are public, of which none is reached from here but by the mirror. */
export const PUBLIC_IPV4 = '93.184.216.34';
export const PUBLIC_IPV6 = '2606:2800:21f:cb07:6820:80da:af6b:8b2c';

/** The same as `PUBLIC_IPV4`, for networks without IPv4 (RFC 6052). */
export const PUBLIC_NAT64 = '64:ff9b::5db8:d822';

/** What the hosts file of the network has. */
export const hosts: Record<string, string[]> = { 'mail.test': [PUBLIC_IPV6, PUBLIC_IPV4] };
