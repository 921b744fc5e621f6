//! What libvirt's errors mean.

use hypervisor::{Error, Kind};
use virt::error::{Error as VirtError, ErrorNumber};

/// The error of a call that failed while `doing`.
pub(crate) fn refused(doing: &str, error: &VirtError) -> Error {
    let doing = doing.to_owned();
    let why = error.message().to_owned();
    let missing = |kind| Error::NotFound { kind, name: quoted(&why) };
    match error.code() {
        ErrorNumber::NoDomain => missing(Kind::Domain),
        ErrorNumber::NoNetwork => missing(Kind::Network),
        ErrorNumber::NoStoragePool => missing(Kind::Pool),
        ErrorNumber::NoStorageVolume => missing(Kind::Volume),
        ErrorNumber::NoSupport | ErrorNumber::ConfigUnsupported | ErrorNumber::ArgumentUnsupported => {
            Error::Unsupported { doing, why }
        }
        ErrorNumber::NoConnect | ErrorNumber::InvalidConn => Error::Unreachable { doing, why },
        _ if why.contains("No space left on device") => Error::NoSpace { doing, why },
        _ => Error::Refused { doing, why },
    }
}

/// The name that libvirt quotes in a message, else the message.
fn quoted(message: &str) -> String {
    let name = message.split_once('\'').and_then(|(_, rest)| rest.split_once('\'')).map(|(name, _)| name);
    name.unwrap_or(message).to_owned()
}

/// Whether the error says that there is no such thing.
pub(crate) fn is_missing(error: &VirtError) -> bool {
    matches!(
        error.code(),
        ErrorNumber::NoDomain | ErrorNumber::NoNetwork | ErrorNumber::NoStoragePool | ErrorNumber::NoStorageVolume
    )
}

/// None where there is no such thing.
pub(crate) fn found<T>(answer: Result<T, VirtError>) -> Result<Option<T>, VirtError> {
    match answer {
        Ok(there) => Ok(Some(there)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn the_name_is_what_libvirt_quotes() {
        assert_eq!(quoted("Domain not found: no domain with matching name 'worker-0'"), "worker-0");
        assert_eq!(quoted("Network not found"), "Network not found");
    }
}
