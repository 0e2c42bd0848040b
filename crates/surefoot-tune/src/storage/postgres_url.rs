//! URLs of PostgreSQL databases.

use super::tls::{Encryption, OPTIONS};
use super::{PASSWORD_VARIABLE, StorageError};
use percent_encoding::percent_decode_str;
use std::error::Error as StdError;
use std::ffi::OsString;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A parsed URL.
pub(super) struct ServerUrl {
    /// URL without its password, for messages and for connecting again.
    pub(super) name: String,
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
}

impl ServerUrl {
    /// Parses a URL. Environment variables replace missing options.
    pub(super) fn parse(
        url: &str,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<ServerUrl, StorageError> {
        let parts = Parts::of(url);
        let reject = |message: String| StorageError::Url { url: parts.shown(), message };
        // The driver takes everything before the first `@` for user and password.
        if parts.user.contains('/') {
            let message = "write `@` as `%40` and `/` as `%2F` in names, passwords and options";
            return Err(reject(message.to_owned()));
        }
        let mut pairs = Vec::new();
        for pair in parts.pairs() {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |text| percent_decode_str(text).decode_utf8();
            let (Ok(key), Ok(value)) = (decode(key), decode(value)) else {
                return Err(reject("the options are not valid UTF-8".to_owned()));
            };
            pairs.push((pair, key, value));
        }
        let option = |name: &str| {
            let found = pairs.iter().rev().find(|(_, key, _)| key == name);
            found.map(|(_, _, value)| value.clone().into_owned())
        };
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let text = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
        let encryption = Encryption::new(option, text).map_err(reject)?;
        let is_tls = |key: &str| OPTIONS.iter().any(|(option, _)| *option == key);
        let others = pairs.iter().filter(|(_, key, _)| !is_tls(key)).map(|(pair, ..)| *pair);
        let others: Vec<&str> = others.collect();
        let rest = format!("{}?{}", &url[..url.len() - parts.query.len()], others.join("&"));
        let rest = rest.replacen("??", "?", 1);
        let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| {
            let cause = error.source().map(ToString::to_string);
            reject(cause.unwrap_or_else(|| error.to_string()))
        })?;
        if config.get_password().is_none()
            && let Some(password) = variable(PASSWORD_VARIABLE)
        {
            config.password(password.into_encoded_bytes());
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(reject("the URL has no host".to_owned()));
        }
        let is_address = config.get_hosts().is_empty();
        if is_address && encryption.mode == SslMode::Require {
            return Err(reject("an encrypted connection needs a host name".to_owned()));
        }
        // Servers do not encrypt sockets of their own machine.
        let is_local = !config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_)));
        config.ssl_mode(if is_local { SslMode::Disable } else { encryption.mode });
        let tls = encryption.connector().map_err(reject)?;
        Ok(ServerUrl { name: parts.without_password(), config, tls })
    }
}

/// Parts of `SCHEME://USER:PASSWORD@PLACE?QUERY`.
struct Parts<'a> {
    scheme: &'a str,
    /// User and password.
    user: &'a str,
    /// Host, port and database.
    place: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Parts<'a> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
        let (user, rest) = rest.split_once('@').unwrap_or(("", rest));
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        Parts { scheme, user, place, query }
    }

    fn pairs(&self) -> impl Iterator<Item = &'a str> {
        self.query.split('&').filter(|pair| !pair.is_empty())
    }

    /// The URL up to its options, for messages about a malformed one.
    fn shown(&self) -> String {
        // The rest of a password may follow the first `@`.
        if self.user.contains('/') || self.place.contains('@') {
            return format!("{}://…", self.scheme);
        }
        Parts { query: "", ..*self }.without_password()
    }

    fn without_password(&self) -> String {
        let user = self.user.split(':').next().unwrap_or_default();
        let at = if user.is_empty() { "" } else { "@" };
        let is_password = |pair: &&str| {
            let key = pair.split('=').next().unwrap_or_default();
            percent_decode_str(key).decode_utf8_lossy() == "password"
        };
        let pairs: Vec<&str> = self.pairs().filter(|pair| !is_password(pair)).collect();
        let mark = if pairs.is_empty() { "" } else { "?" };
        format!("{}://{user}{at}{}{mark}{}", self.scheme, self.place, pairs.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> ServerUrl {
        ServerUrl::parse(url, |_| None).unwrap_or_else(|error| panic!("{error}"))
    }

    fn error(url: &str) -> String {
        ServerUrl::parse(url, |_| None).err().expect("an error").to_string()
    }

    fn mode(url: &str) -> SslMode {
        parsed(url).config.get_ssl_mode()
    }

    #[test]
    fn local_sockets_are_not_encrypted() {
        assert_eq!(mode("postgres://db/studies"), SslMode::Prefer);
        assert_eq!(mode("postgres://db/studies?sslmode=require"), SslMode::Require);
        assert_eq!(mode("postgres://me@%2Ftmp/studies?sslmode=require"), SslMode::Disable);
    }

    #[test]
    fn encryption_needs_a_host_name() {
        let address = "postgres:///studies?hostaddr=10.0.0.1";
        assert_eq!(mode(address), SslMode::Disable);
        assert_eq!(
            error(&format!("{address}&sslmode=require")),
            "postgres:///studies: an encrypted connection needs a host name"
        );
    }

    #[test]
    fn encoded_options_are_recognized() {
        let config =
            parsed("postgres://me:a?b@db/s?ssl%6Dode=require&po%72t=5433&connect_timeout=3").config;
        assert_eq!(config.get_ssl_mode(), SslMode::Require);
        assert_eq!(config.get_ports().last(), Some(&5433));
        assert_eq!(config.get_password(), Some(&b"a?b"[..]));
        assert_eq!(config.get_connect_timeout(), Some(&std::time::Duration::from_secs(3)));
    }

    #[test]
    fn an_at_sign_cannot_hide_options() {
        let url = "postgres://db/s?sslmode=verify-full&sslrootcert=/home/me@corp/ca.pem";
        assert!(error(url).contains("%40"));
        let error = error(&url.replace("//db", "//me@db"));
        assert!(error.contains("/home/me@corp/ca.pem"), "{error}");
    }

    #[test]
    fn messages_do_not_contain_passwords() {
        for url in [
            "postgres://me:secret@db:x/studies",
            "postgres://db/studies?password=secret&sslmode=never",
            "postgres://me:sec@ret@db/studies?port=secret",
            "postgres://me:sec?ret@db/studies?sslmode=never",
            "postgres://me:sec/ret@db/studies",
            "postgres://db/studies?password=sec@ret",
        ] {
            let message = error(url);
            assert!(!message.contains("sec") && !message.contains("ret"), "{message}");
        }
        for url in [
            "postgres://me:secret@db:5433/studies",
            "postgres://me:sec?ret@db:5433/studies?password=secret",
            "postgres://me@db:5433/studies?pass%77ord=secret&",
        ] {
            assert_eq!(parsed(url).name, "postgres://me@db:5433/studies");
        }
    }

    #[test]
    fn names_are_urls() {
        for url in [
            "postgresql://me@db/studies",
            "postgres://me@%2Ftmp%2Fpg:5499/studies",
            "postgres://[::1]:5433/studies?sslmode=require&user=me",
            "postgres:///studies?hostaddr=10.0.0.1",
        ] {
            assert_eq!(parsed(url).name, url);
        }
        assert_eq!(
            parsed("postgres://me:secret@a,b/s?sslmode=require&password=x&application_name=y").name,
            "postgres://me@a,b/s?sslmode=require&application_name=y"
        );
    }

    #[test]
    fn a_missing_password_is_read_from_the_environment() {
        let password = |url: &str| {
            let variable = |name: &str| (name == PASSWORD_VARIABLE).then(|| "there".into());
            let url = ServerUrl::parse(url, variable).unwrap_or_else(|error| panic!("{error}"));
            url.config.get_password().map(<[u8]>::to_vec)
        };
        assert_eq!(password("postgres://me@db/studies"), Some(b"there".into()));
        assert_eq!(password("postgres://me:here@db/studies"), Some(b"here".into()));
    }

    #[test]
    fn a_url_without_a_host_is_rejected() {
        assert_eq!(error("postgres:///studies"), "postgres:///studies: the URL has no host");
    }
}
