//! What a token says of itself. Its signature is the API server's to check: it came to us from the provider itself over
//! TLS (OpenID Connect Core 3.1.3.7, number 6).

use anyhow::{Context as _, ensure};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;

/// The claims that decide whether a token is ours and for how long.
#[derive(Clone, Debug, Deserialize)]
pub struct Claims {
    /// Who issued it.
    pub iss: String,
    /// For whom.
    pub aud: Audience,
    /// Until when, in seconds since the epoch.
    pub exp: i64,
    /// What we sent with the login that it answers.
    #[serde(default)]
    pub nonce: Option<String>,
}

/// One audience or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Claims {
    /// The claims of a token.
    pub fn of(token: &str) -> anyhow::Result<Self> {
        let payload = token.split('.').nth(1).context("the provider's token is no JWT")?;
        let bytes = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).context("the provider's token is no JWT")?;
        serde_json::from_slice(&bytes).context("the provider's token lacks iss, aud or exp")
    }

    /// Whether the token is of this issuer and for this client.
    pub fn check(&self, issuer: &str, client_id: &str) -> anyhow::Result<()> {
        ensure!(self.iss == issuer, "the token is of issuer {:?}, and {issuer:?} was asked for", self.iss);
        let ours = match &self.aud {
            Audience::One(one) => one == client_id,
            Audience::Several(several) => several.iter().any(|one| one == client_id),
        };
        ensure!(ours, "the token is not for client {client_id:?}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> String {
        format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn issuer_and_audience_decide_whose_it_is() {
        let one = Claims::of(&token(r#"{"iss":"https://a/dex","aud":"kubernetes","exp":5}"#)).unwrap();
        assert!(one.check("https://a/dex", "kubernetes").is_ok());
        assert!(one.check("https://a/dex", "other").unwrap_err().to_string().contains("\"other\""));
        assert!(one.check("https://b/dex", "kubernetes").is_err());
        let several = Claims::of(&token(r#"{"iss":"https://a/dex","aud":["x","kubernetes"],"exp":5}"#)).unwrap();
        assert!(several.check("https://a/dex", "kubernetes").is_ok());
    }

    #[test]
    fn what_is_no_token_is_an_error() {
        for text in ["", "a.b", "a.!.c", &token("{}"), &token("[]")] {
            assert!(Claims::of(text).is_err(), "{text}");
        }
    }
}
