//! `slipway crds`: our CustomResourceDefinitions, as they are applied.

use std::fmt::Write as _;

/// All definitions as one YAML text.
pub fn yaml() -> anyhow::Result<String> {
    let mut text = String::new();
    for crd in api::crds() {
        let _ = write!(text, "---\n{}", serde_saphyr::to_string(&crd)?);
    }
    Ok(text)
}
