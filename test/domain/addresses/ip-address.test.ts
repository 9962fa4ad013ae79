import { describe, expect, it } from 'vitest';
import {
  checkWebhookUrl,
  isPublicAddress,
  networkOf,
  widerNetworksOf,
} from '../../../src/domain/addresses/ip-address.ts';

describe('isPublicAddress', () => {
  it.each([
    '1.1.1.1',
    '8.8.8.8',
    '172.15.0.1',
    '172.32.0.1',
    '100.63.255.255',
    '100.128.0.1',
    '169.253.1.1',
    '223.255.255.255',
    '192.0.1.1',
    '2606:4700:4700::1111',
    '2a00:1450:4001::200e',
    '2001:200::1',
    '3ffe::1',
    '64:ff9b::1.1.1.1',
  ])('lets %s through', (ip) => {
    expect(isPublicAddress(ip)).toBe(true);
  });

  it.each([
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.8',
    '192.0.2.1',
    '192.31.196.1',
    '192.52.193.1',
    '192.88.99.1',
    '192.168.1.1',
    '192.175.48.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '::ffff:0:127.0.0.1',
    '::ffff:7f00:1',
    '64:ff9b::7f00:1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::10.0.0.1',
    '64:ff9b::1:5db8:d822',
    '64:ff9b:1::1',
    '100::1',
    '2001::1',
    '2001:0:7f00:1::',
    '2001:2::1',
    '2001:10::1',
    '2001:20::1',
    '2001:db8::1',
    '2002:7f00:1::',
    '2620:4f:8000::1',
    '3fff::1',
    '5f00::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
    '2606:4700::1%eth0',
    '4000::1',
    '',
    'localhost',
    '127.1',
    '0x7f.0.0.1',
    '2130706433',
    '1.1.1.1.',
    '1.1.1.256',
    '[::1]',
    ' 1.1.1.1',
  ])('refuses %s', (ip) => {
    expect(isPublicAddress(ip)).toBe(false);
  });
});

describe('checkWebhookUrl', () => {
  const check = (url: string, allowPrivate = false) => checkWebhookUrl(url, { allowPrivate });

  it.each([
    [
      'http://localhost:3000',
      'Expected an HTTPS URL, unless the service runs with WEBHOOK_ALLOW_PRIVATE=true',
    ],
    [
      'https://localhost:3000',
      'The host of a webhook must be public, unless the service runs with WEBHOOK_ALLOW_PRIVATE=true',
    ],
  ])('says which setting would accept %s', (url, message) => {
    expect(check(url)).toBe(message);
  });

  it.each([
    'https://example.com',
    'https://example.com:8443/hook?a=b#c',
    'https://1.1.1.1/',
    'https://[2606:4700::1111]/',
    'https://bücher.example/',
    `https://example.com/${'a'.repeat(2028)}`,
  ])('accepts %s', (url) => {
    expect(check(url)).toBeUndefined();
  });

  it.each([
    '',
    'example.com',
    '/hook',
    'http://example.com',
    'ftp://example.com',
    'javascript:alert(1)',
    'https://',

    'https://user@example.com',
    'https://user:pass@example.com',
    'https://:pass@example.com',
    'https://exa\nmple.com',
    ' https://example.com',
    'https://example.com/a b',
    'https://example.com/\0',

    'https://localhost',
    'https://LOCALHOST',
    'https://localhost.',
    'https://a.localhost',
    'https://nas.local',

    'https://db.internal',
    'https://metadata.google.internal.',
    'https://127.0.0.1',
    'https://127.1',

    'https://2130706433',
    'https://0x7f000001',
    'https://0177.0.0.1',
    'https://127.0.0.1.',
    'https://%31%32%37.0.0.1',

    'https://①②⑦.0.0.1',
    'https://127。0。0。1',
    'https://[::1]',
    'https://[::ffff:127.0.0.1]',
    'https://[fd00::1]',

    'https://[64:ff9b::127.0.0.1]',
    'https://10.0.0.1',
    'https://169.254.169.254/latest',
    'https://0',
    `https://example.com/${'a'.repeat(2029)}`,
  ])('refuses %j', (url) => {
    expect(check(url)).toEqual(expect.any(String));
  });

  it('lifts the rules of host and HTTPS for development, and no other', () => {
    expect(check('http://127.0.0.1:9000/hook', true)).toBeUndefined();
    expect(check('http://localhost:9000/hook', true)).toBeUndefined();
    expect(check('http://user:pass@localhost', true)).toEqual(expect.any(String));
    expect(check('ftp://localhost', true)).toBe('Expected an HTTP or HTTPS URL');
  });
});

it.each([
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['192.0.2.1', '192.0.2.1'],
  ['192.0.2.1:50000', '192.0.2.1'],
  ['[2001:db8:1:2::1]:50000', '2001:db8:1:2::/64'],
  ['unknown', 'unknown'],
])('counts %s as %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

it.each([
  [
    '2001:db8:1:2345::1',
    [
      ['2001:db8:1:2300::/56', 4],
      ['2001:db8:1::/48', 8],
    ],
  ],
  [
    '2001:db8:0:23::1',
    [
      ['2001:db8:0:0::/56', 4],
      ['2001:db8:0::/48', 8],
    ],
  ],
  ['192.0.2.1:50000', [['192.0.2.0/24', 8]]],
  ['unknown', []],
])('counts %s within %j', (address, networks) => {
  expect(widerNetworksOf(address).map(({ network, times }) => [network, times])).toEqual(networks);
});
