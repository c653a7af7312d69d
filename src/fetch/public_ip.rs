//! Checks whether an IP address is public: pages are fetched from public addresses only, in whatever form they are written.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A block of addresses and why no page is fetched from it.
type Block<A> = (A, u32, &'static str);

/// IPv4 blocks that are not public: the IANA special-purpose registry (RFC 6890 and its successors), and the one public
/// address that a cloud uses for its own service. The more specific reason comes first.
const V4: [Block<Ipv4Addr>; 19] = [
    (Ipv4Addr::new(169, 254, 169, 254), 32, CLOUD),
    (Ipv4Addr::new(100, 100, 100, 200), 32, CLOUD),
    (Ipv4Addr::new(192, 0, 0, 192), 32, CLOUD),
    (Ipv4Addr::new(168, 63, 129, 16), 32, CLOUD),
    (Ipv4Addr::UNSPECIFIED, 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, PRIVATE),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "a carrier's own network"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, LOOPBACK),
    (Ipv4Addr::new(169, 254, 0, 0), 16, LINK_LOCAL),
    (Ipv4Addr::new(172, 16, 0, 0), 12, PRIVATE),
    (Ipv4Addr::new(192, 0, 0, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 0, 2, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(192, 88, 99, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 168, 0, 0), 16, PRIVATE),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "for benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(203, 0, 113, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(224, 0, 0, 0), 4, MULTICAST),
    (Ipv4Addr::new(240, 0, 0, 0), 4, RESERVED),
];

/// Blocks that are not public in `2000::/3`, the only public part of IPv6.
const V6: [Block<Ipv6Addr>; 4] = [
    // Teredo, ORCHID, benchmarks: no pages are served from them.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, RESERVED),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, DOCUMENTATION),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "translated from IPv4"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, DOCUMENTATION),
];

/// Named blocks outside `2000::/3`.
const V6_NAMED: [Block<Ipv6Addr>; 6] = [
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128, CLOUD),
    (Ipv6Addr::LOCALHOST, 128, LOOPBACK),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, PRIVATE),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, LINK_LOCAL),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, PRIVATE),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, MULTICAST),
];

const CLOUD: &str = "a cloud's metadata service";
const DOCUMENTATION: &str = "for documentation only";
const LINK_LOCAL: &str = "link-local";
const LOOPBACK: &str = "this machine";
const MULTICAST: &str = "multicast";
const PRIVATE: &str = "private";
const RESERVED: &str = "reserved";

/// Returns why `address` is not public; `None` if it is.
pub fn non_public_reason(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => non_public_reason_v4(address),
        IpAddr::V6(address) => match embedded_ipv4(address) {
            Some(inner) => non_public_reason_v4(inner),
            None => non_public_reason_v6(address),
        },
    }
}

fn non_public_reason_v4(address: Ipv4Addr) -> Option<&'static str> {
    let found = V4.iter().find(|(block, length, _)| {
        let shift = u32::BITS - length;
        u32::from(*block).checked_shr(shift) == u32::from(address).checked_shr(shift)
    });
    found.map(|(_, _, reason)| *reason)
}

fn non_public_reason_v6(address: Ipv6Addr) -> Option<&'static str> {
    let within = |blocks: &[Block<Ipv6Addr>]| {
        let found = blocks.iter().find(|(block, length, _)| {
            let shift = u128::BITS - length;
            u128::from(*block).checked_shr(shift) == u128::from(address).checked_shr(shift)
        });
        found.map(|(_, _, reason)| *reason)
    };
    if u128::from(address) >> 125 == 0b001 { within(&V6) } else { within(&V6_NAMED).or(Some(RESERVED)) }
}

/// Returns the IPv4 address that is finally dialled: of a mapped address (`::ffff:0:0/96`) by the kernel, of an address
/// with the well-known prefix of RFC 6052 (`64:ff9b::/96`) by a translator on the way.
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [.., high, low] = address.segments();
    let prefix = address.segments();
    let translated = matches!(prefix, [0x64, 0xff9b, 0, 0, 0, 0, ..]);
    let inner = Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    address.to_ipv4_mapped().or(translated.then_some(inner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reason_for(address: &str) -> Option<&'static str> {
        non_public_reason(address.parse().unwrap())
    }

    #[test]
    fn class_53_every_part_of_the_address_space_that_is_not_the_public_internet_is_named() {
        for (address, reason) in [
            ("127.0.0.1", LOOPBACK),
            ("127.255.255.254", LOOPBACK),
            ("0.0.0.0", "this network"),
            ("10.0.0.1", PRIVATE),
            ("172.16.0.1", PRIVATE),
            ("172.31.255.255", PRIVATE),
            ("192.168.1.1", PRIVATE),
            ("100.64.0.1", "a carrier's own network"),
            ("100.127.255.255", "a carrier's own network"),
            ("100.100.100.200", CLOUD),
            ("169.254.169.254", CLOUD),
            ("169.254.1.1", LINK_LOCAL),
            ("168.63.129.16", CLOUD),
            ("192.0.0.192", CLOUD),
            ("192.0.2.1", DOCUMENTATION),
            ("198.51.100.1", DOCUMENTATION),
            ("203.0.113.1", DOCUMENTATION),
            ("198.19.255.255", "for benchmarks"),
            ("224.0.0.1", MULTICAST),
            ("239.255.255.255", MULTICAST),
            ("240.0.0.1", RESERVED),
            ("255.255.255.255", RESERVED),
            ("::", RESERVED),
            ("::1", LOOPBACK),
            ("::7f00:1", RESERVED),
            ("::ffff:127.0.0.1", LOOPBACK),
            ("::ffff:10.0.0.1", PRIVATE),
            ("64:ff9b::a00:1", PRIVATE),
            ("64:ff9b::a9fe:a9fe", CLOUD),
            ("64:ff9b:1::1", RESERVED),
            ("100::1", RESERVED),
            ("2001::1", RESERVED),
            ("2001:20::1", RESERVED),
            ("2001:db8::1", DOCUMENTATION),
            ("2002:7f00:1::", "translated from IPv4"),
            ("3fff::1", DOCUMENTATION),
            ("5f00::1", RESERVED),
            ("fc00::1", PRIVATE),
            ("fd00:ec2::254", CLOUD),
            ("fe80::1", LINK_LOCAL),
            ("febf::1", LINK_LOCAL),
            ("fec0::1", PRIVATE),
            ("ff02::1", MULTICAST),
        ] {
            assert_eq!(reason_for(address), Some(reason), "{address}");
        }
    }

    #[test]
    fn neighbours_of_the_special_blocks_are_public() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2001:200::1",
            "2606:4700::1111",
            "3ffe::1",
        ] {
            assert_eq!(reason_for(address), None, "{address}");
        }
    }

    proptest! {
        #[test]
        fn an_address_of_a_special_block_is_refused_in_each_of_its_forms(
            at in 0..V4.len(), bits: u32,
        ) {
            let (block, length, _) = V4[at];
            let mask = u32::MAX.checked_shr(length).unwrap_or(0);
            let address = Ipv4Addr::from(u32::from(block) | (bits & mask));
            prop_assert!(non_public_reason(address.into()).is_some());
            prop_assert_eq!(non_public_reason(address.to_ipv6_mapped().into()), non_public_reason(address.into()));
            prop_assert!(non_public_reason(address.to_ipv6_compatible().into()).is_some());
        }

        #[test]
        fn what_the_standard_library_calls_local_is_never_public(bits: u128, narrow: u32) {
            let six = Ipv6Addr::from(bits);
            if six.is_loopback() || six.is_multicast() || six.is_unique_local() || six.is_unicast_link_local() {
                prop_assert!(non_public_reason(six.into()).is_some());
            }
            let four = Ipv4Addr::from(narrow);
            let local = four.is_private() || four.is_loopback() || four.is_link_local() || four.is_broadcast();
            if local || four.is_documentation() || four.is_multicast() || four.is_unspecified() {
                prop_assert!(non_public_reason(four.into()).is_some());
            }
        }
    }
}
