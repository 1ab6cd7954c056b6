//! SHA-256, for ids that are longer than what they are kept in.

/// The first 32 bits behind the point of the square roots, and of the cube roots, of the first primes.
const START: [u32; 8] = fractions::<8>(2);
const ROUNDS: [u32; 64] = fractions::<64>(3);

/// The digest of some bytes.
pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    let filler = (120 - padded.len() % 64) % 64;
    padded.resize(padded.len() + filler, 0);
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    let mut state = START;
    for block in padded.chunks_exact(64) {
        let mixed = compressed(state, block);
        state.iter_mut().zip(mixed).for_each(|(word, mixed)| *word = word.wrapping_add(mixed));
    }
    let mut digest = [0; 32];
    let words = state.iter().flat_map(|word| word.to_be_bytes());
    digest.iter_mut().zip(words).for_each(|(place, byte)| *place = byte);
    digest
}

fn compressed(state: [u32; 8], block: &[u8]) -> [u32; 8] {
    let mut words = std::collections::VecDeque::with_capacity(17);
    words.extend(
        block
            .chunks_exact(4)
            .map(|chunk| chunk.iter().fold(0u32, |word, &byte| (word << 8) | u32::from(byte))),
    );
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    for constant in ROUNDS {
        let at = |index: usize| words.get(index).copied().unwrap_or_default();
        let word = at(0);
        let (early, late) = (at(1), at(14));
        let small = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
        let large = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
        let next = word.wrapping_add(small).wrapping_add(at(9)).wrapping_add(large);
        words.pop_front();
        words.push_back(next);

        let turned = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let chosen = (e & f) ^ (!e & g);
        let first = h.wrapping_add(turned).wrapping_add(chosen).wrapping_add(constant).wrapping_add(word);
        let turned = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let second = turned.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
    }
    [a, b, c, d, e, f, g, h]
}

/// Of the roots of the first primes, found by halving.
#[allow(clippy::indexing_slicing, reason = "evaluated as the crate is compiled")]
const fn fractions<const N: usize>(root: u32) -> [u32; N] {
    let mut found = [0; N];
    let (mut prime, mut at) = (2u128, 0);
    while at < N {
        // The largest number whose power is not above the prime, in units of 2^-32.
        let (mut low, mut high) = (0u128, 1u128 << 38);
        while high - low > 1 {
            let middle = (low + high) / 2;
            let fits = if root == 2 {
                middle * middle <= prime << 64
            } else {
                middle * middle * middle <= prime << 96
            };
            if fits {
                low = middle;
            } else {
                high = middle;
            }
        }
        found[at] = low as u32;
        at += 1;
        prime += 1;
        while !is_prime(prime) {
            prime += 1;
        }
    }
    found
}

const fn is_prime(number: u128) -> bool {
    let mut divisor = 2;
    while divisor * divisor <= number {
        if number.is_multiple_of(divisor) {
            return false;
        }
        divisor += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> String {
        sha256(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn it_gives_the_published_digests() {
        assert_eq!(shown(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(shown(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(shown(two_blocks), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        let million = vec![b'a'; 1_000_000];
        assert_eq!(shown(&million), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
}
