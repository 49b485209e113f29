//! Which certificates to trust, and which one to present: reads the files, and verifies servers.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{
        CertificateDer, PrivateKeyDer, ServerName, UnixTime,
        pem::{Error as PemError, PemObject as _},
    },
    server::ParsedCertificate,
};

use super::{super::address::Settings, Mode};

/// The permissions that others must not have on a private key. A key owned by root may be readable by its group.
const OTHERS: u32 = 0o077;
const OTHERS_BUT_GROUP_READ: u32 = 0o037;

/// The configuration, and whom it trusts, for messages, if servers are verified.
pub(super) fn client_config(
    settings: &Settings,
    mode: Mode,
) -> Result<(ClientConfig, Option<String>), String> {
    let provider = Arc::new(ring::default_provider());
    let (roots, trusts) = match trusted(settings, mode)? {
        None => (None, None),
        Some((roots, trusts)) => (Some(roots), Some(trusts)),
    };
    let verifier = Verifier {
        roots,
        checks_name: mode == Mode::VerifyFull,
        algorithms: provider.signature_verification_algorithms,
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let config = match identity(settings, mode)? {
        None => builder.with_no_client_auth(),
        Some((certificates, key)) => builder
            .with_client_auth_cert(certificates, key)
            .map_err(|error| format!("sslcert and sslkey do not go together: {error}"))?,
    };
    Ok((config, trusts))
}

/// Trusted certificates.
#[derive(Debug)]
struct Roots {
    store: RootCertStore,
    /// The certificates that the user named. A server may present one of them as its own.
    named: Vec<CertificateDer<'static>>,
}

/// What to verify the server's certificate against, also in words; `None` if the mode doesn't verify.
fn trusted(settings: &Settings, mode: Mode) -> Result<Option<(Roots, String)>, String> {
    if matches!(mode, Mode::Disable | Mode::Prefer) {
        return Ok(None);
    }
    let named = settings.get("sslrootcert");
    let file = match named {
        Some("system") => None,
        Some(path) => Some(PathBuf::from(path)),
        None => settings
            .in_home(".postgresql/root.crt")
            .filter(|path| path.exists()),
    };
    match (file, mode) {
        (Some(path), _) => {
            let certificates = read_certificates(&path, "sslrootcert")?;
            let mut store = RootCertStore::empty();
            for certificate in &certificates {
                store
                    .add(certificate.clone())
                    .map_err(|error| format!("a certificate in {} is of no use: {error}", path.display()))?;
            }
            let roots = Roots {
                store,
                named: certificates,
            };
            Ok(Some((roots, path.display().to_string())))
        }
        (None, Mode::VerifyFull) => Ok(Some((system_roots()?, "any authority this system trusts".to_owned()))),
        // Anyone can have a certificate of a public authority, in some name.
        (None, Mode::VerifyCa) => Err(
            "sslmode=verify-ca wants the certificate of your authority in sslrootcert; for a server with a public \
             certificate use sslmode=verify-full"
                .to_owned(),
        ),
        (None, _) => Ok(None),
    }
}

fn system_roots() -> Result<Roots, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    // A system's list is long, and some certificates in it may not be parsable.
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let why = found
            .errors
            .first()
            .map_or_else(|| "there are none".to_owned(), ToString::to_string);
        return Err(format!(
            "this system has no usable list of certificate authorities: {why}; install ca-certificates, or set sslrootcert"
        ));
    }
    Ok(Roots {
        store,
        named: Vec::new(),
    })
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// What to present to a server that asks for a client certificate.
fn identity(settings: &Settings, mode: Mode) -> Result<Option<Identity>, String> {
    if mode == Mode::Disable {
        return Ok(None);
    }
    let place = |name: &str, usual: &str| match settings.get(name) {
        Some(path) => Some(PathBuf::from(path)),
        None => settings.in_home(usual).filter(|path| path.exists()),
    };
    let certificate = place("sslcert", ".postgresql/postgresql.crt");
    let key = place("sslkey", ".postgresql/postgresql.key");
    let (certificate, key) = match (certificate, key) {
        (Some(certificate), Some(key)) => (certificate, key),
        (None, None) => return Ok(None),
        (Some(_), None) => return Err("sslcert is there without sslkey".to_owned()),
        (None, Some(_)) => return Err("sslkey is there without sslcert".to_owned()),
    };
    let certificates = read_certificates(&certificate, "sslcert")?;
    let shown = key.display();
    let cannot = |error: String| format!("the key {shown} (sslkey) cannot be read: {error}");
    let metadata = fs::metadata(&key).map_err(|error| cannot(error.to_string()))?;
    let others = if metadata.uid() == 0 {
        OTHERS_BUT_GROUP_READ
    } else {
        OTHERS
    };
    if metadata.mode() & others != 0 {
        return Err(format!(
            "others can read the key {shown} (sslkey); run chmod 600 on it"
        ));
    }
    let key = PrivateKeyDer::from_pem_file(&key).map_err(|error| match error {
        PemError::NoItemsFound => cannot("it holds no key in PEM form without a passphrase".to_owned()),
        PemError::Io(error) => cannot(error.to_string()),
        _ => cannot("it is not in PEM form".to_owned()),
    })?;
    Ok(Some((certificates, key)))
}

fn read_certificates(path: &Path, parameter: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let cannot = |error: PemError| {
        let why = match error {
            PemError::Io(error) => error.to_string(),
            _ => "it is not in PEM form".to_owned(),
        };
        format!("the file {} ({parameter}) cannot be read: {why}", path.display())
    };
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(cannot);
    match found {
        Ok(none) if none.is_empty() => Err(format!(
            "the file {} ({parameter}) holds no certificate in PEM form",
            path.display()
        )),
        found => found,
    }
}

/// Verifies the certificate of a server.
#[derive(Debug)]
struct Verifier {
    /// `None` if servers aren't verified.
    roots: Option<Roots>,
    checks_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(roots) = &self.roots else {
            return Ok(ServerCertVerified::assertion());
        };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let signed = verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &roots.store,
            intermediates,
            now,
            self.algorithms.all,
        );
        match signed {
            // A server that was set up quickly has a self-signed certificate. It is rejected for that after its
            // dates were checked, and is fine if it is exactly the one that the user named.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if roots.named.contains(end_entity) => {}
            signed => signed?,
        }
        if self.checks_name {
            verify_server_name(&certificate, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
