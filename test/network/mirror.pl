# Plays the rest of the internet on one end of a veth pair: sends each packet back with its addresses swapped, so that
# whatever listens here answers at every address, this many milliseconds later. What goes to the addresses named after
# that is lost. The frames keep the kernel's header (PACKET_VNET_HDR), which says what is left of their checksums.
# Run as: perl mirror.pl INTERFACE_INDEX DELAY_MS [LOST_ADDRESS...]
use strict;
use warnings;
use Socket qw(AF_INET AF_INET6 inet_pton);
use Time::HiRes 'time';
use constant { AF_PACKET => 17, SOCK_RAW => 3, ETH_P_ALL => 3, SOL_PACKET => 263, PACKET_VNET_HDR => 15, ETH_P_IP => 0x0800 };

my ($index, $delay_ms, @lost) = @ARGV;
my %lost = map { (inet_pton(/:/ ? AF_INET6 : AF_INET, $_) => 1) } @lost;
socket(my $wire, AF_PACKET, SOCK_RAW, unpack('S', pack('n', ETH_P_ALL))) or die "socket: $!";
setsockopt($wire, SOL_PACKET, PACKET_VNET_HDR, pack('i', 1)) or die "setsockopt: $!";
bind($wire, pack('S n l x12', AF_PACKET, ETH_P_ALL, $index)) or die "bind: $!";
$| = 1;
print "started\n";

my @queue;
while (1) {
  vec(my $readable = '', fileno($wire), 1) = 1;
  my $wait = @queue ? $queue[0]{at} - time : undef;
  if (select($readable, undef, undef, defined $wait && $wait < 0 ? 0 : $wait) > 0) {
    sysread($wire, my $frame, 70_000) // die "sysread: $!";
    # The kernel's header has 10 bytes, that of Ethernet 14.
    my ($at, $length) = unpack('x22 n', $frame) == ETH_P_IP ? (24 + 12, 4) : (24 + 8, 16);
    my ($from, $to) = unpack("x$at a$length a$length", $frame);
    next if $lost{$to};
    substr($frame, $at, 2 * $length) = $to . $from;
    push @queue, { at => time + $delay_ms / 1_000, frame => $frame };
  }
  syswrite($wire, shift(@queue)->{frame}) while @queue && $queue[0]{at} <= time;
}
