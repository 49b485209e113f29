//! Channel binding: ties a login to its encrypted connection by the hash of the server's certificate (RFC 5929),
//! so that nobody in between can forward the login.

use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// The value of `tls-server-end-point`; `None` if it isn't defined for the certificate's signature algorithm.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // The last number of each identifier selects the hash; 1.2.840.113549.1.1 is RSA, 1.2.840.10045.4 is ECDSA.
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA_SHA2: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    let (last, family) = signature_algorithm(certificate)?.split_last()?;
    match (family, last) {
        // MD5 and SHA-1 are replaced by SHA-256.
        (RSA, 4 | 5 | 11) | (ECDSA_SHA2, 2) | (ECDSA_SHA1, 1) => Some(Sha256::digest(certificate).to_vec()),
        (RSA, 12) | (ECDSA_SHA2, 3) => Some(Sha384::digest(certificate).to_vec()),
        (RSA, 13) | (ECDSA_SHA2, 4) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// The algorithm in `Certificate ::= SEQUENCE { content, SEQUENCE { algorithm, … }, signature }`.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const OBJECT_IDENTIFIER: u8 = 0x06;
    let (whole, _) = take(SEQUENCE, certificate)?;
    let (_, rest) = take(SEQUENCE, whole)?;
    let (algorithm, _) = take(SEQUENCE, rest)?;
    let (identifier, _) = take(OBJECT_IDENTIFIER, algorithm)?;
    Some(identifier)
}

/// The content of the DER value at the beginning, if it has this tag, and what follows it.
fn take(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    if *found != tag {
        return None;
    }
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = length
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    use super::*;

    #[test]
    fn the_hash_is_the_one_that_the_certificate_is_signed_with() {
        let cases = [
            (&PKCS_ECDSA_P256_SHA256, Some(32)),
            (&PKCS_ECDSA_P384_SHA384, Some(48)),
            (&PKCS_ED25519, None),
        ];
        for (algorithm, expected) in cases {
            let key = KeyPair::generate_for(algorithm).unwrap();
            let certificate = CertificateParams::new(vec!["db.test".to_owned()])
                .unwrap()
                .self_signed(&key)
                .unwrap();
            let found = end_point(certificate.der());
            assert_eq!(found.map(|hash| hash.len()), expected, "{algorithm:?}");
        }
        assert_eq!(end_point(b""), None);
        assert_eq!(end_point(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
