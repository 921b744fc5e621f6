//! A person with a browser: follows the login to Dex's form, fills it in, and goes where Dex sends them.

use reqwest::{Client, Url};

/// Who logs in, by which connector.
#[derive(Clone, Copy, Debug)]
pub struct Person {
    /// Id of the connector; `local` for users of the Secret.
    pub connector: &'static str,
    /// What they type first.
    pub login: &'static str,
    /// What they type then.
    pub password: &'static str,
}

impl Person {
    /// Opens the address and logs in; the last page they see.
    pub async fn visit(self, http: &Client, url: &str) -> String {
        let mut page = http.get(url).send().await.expect("the login page");
        let mut at = page.url().clone();
        let mut text = page.text().await.expect("the login page");
        // With several connectors Dex offers a choice before the form.
        if !text.contains("<form") {
            let link = format!("{}/{}?", at.path(), self.connector);
            let rest = between(&text, &format!("href=\"{link}"), "\"").expect("a link to the connector");
            let next = at.join(&format!("{link}{}", unescaped(&rest))).expect("a link");
            page = http.get(next).send().await.expect("the form");
            at = page.url().clone();
            text = page.text().await.expect("the form");
        }
        let action = unescaped(&between(&text, "action=\"", "\"").expect("a form"));
        let to: Url = at.join(&action).expect("where the form goes");
        let form = [("login", self.login), ("password", self.password)];
        http.post(to).form(&form).send().await.expect("an answer").text().await.expect("a page")
    }
}

fn between(text: &str, before: &str, after: &str) -> Option<String> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found.to_owned())
}

fn unescaped(text: &str) -> String {
    text.replace("&amp;", "&").replace("&#43;", "+")
}
