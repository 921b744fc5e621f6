//! Secrets in manifests, and those that hold state of ours: made once by a step, and kept.

use k8s_openapi::ByteString;
use serde_json::{Map, Value};

use super::{Facts, Kind, Object, Part, Seen, Want};

/// `data` of a Secret: base64, as the API server keeps it.
pub(crate) fn data<'a, V: AsRef<[u8]> + ?Sized + 'a>(entries: impl IntoIterator<Item = (&'a str, &'a V)>) -> Value {
    let encode = |bytes: &[u8]| serde_json::to_value(ByteString(bytes.to_vec())).expect("base64 is always JSON");
    Value::Object(
        entries.into_iter().map(|(key, bytes)| (key.to_owned(), encode(bytes.as_ref()))).collect::<Map<_, _>>(),
    )
}

/// Keeps a Secret whose data nobody can make a second time; `object` makes its manifest around the data.
///
/// It stays as it is. Where its owner was another SIPCluster of this name (restored from a backup, say) it gets the
/// labels of the present one, together with the data it has.
pub(crate) fn keep(want: &Want<'_>, seen: &Seen, name: &str, object: impl FnOnce(Value) -> Object, part: &mut Part) {
    let key = (Kind::Secret, name.to_owned());
    let Some(owned) = seen.objects.get(&key) else { return };
    match &owned.facts {
        Facts::Secret { data: kept } if owned.owner_uid.as_deref() != Some(&want.owner_uid) => {
            part.objects.push(object(data(kept.iter().map(|(key, bytes)| (key.as_str(), &**bytes)))));
        }
        Facts::Secret { .. }
        | Facts::Service { .. }
        | Facts::Deployment { .. }
        | Facts::Binding { .. }
        | Facts::None => {
            part.keep.insert(key);
        }
    }
}
