//! Access control of the board.

use std::net::IpAddr;

use super::BoardError;

/// Checks requests: the host name on this machine, a token elsewhere.
#[derive(Debug)]
pub(super) struct Access {
    /// Required token, unless only this machine can connect.
    token: Option<String>,
    port: u16,
}

/// Decision about a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    /// The address has the token: store it in a cookie and leave it out of the address.
    Enter {
        cookie: String,
    },
    /// The host name is not one of this machine, as when another site's name resolves to it.
    ForeignHost,
    /// The token is missing or wrong.
    NoToken,
}

impl Access {
    pub(super) fn new(host: IpAddr, port: u16) -> Result<Access, BoardError> {
        let token = if host.is_loopback() { None } else { Some(draw_token()?) };
        Ok(Access { token, port })
    }

    /// Address of the page.
    pub(super) fn url(&self, host: IpAddr) -> String {
        let name = match host {
            host if host.is_unspecified() => surefoot_tune::storage::host(),
            IpAddr::V6(host) => format!("[{host}]"),
            IpAddr::V4(host) => host.to_string(),
        };
        let query = self.token.as_ref().map_or(String::new(), |token| format!("?token={token}"));
        format!("http://{name}:{}/{query}", self.port)
    }

    /// Judges a request by its headers `Host` and `Cookie` and the token in its address.
    pub(super) fn judge(&self, host: &str, cookies: &str, given: Option<&str>) -> Verdict {
        let Some(token) = &self.token else {
            let name = match host.rsplit_once(':') {
                Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
                _ => host,
            };
            let is_local = ["localhost", "127.0.0.1", "[::1]"].contains(&name);
            return if is_local { Verdict::Allowed } else { Verdict::ForeignHost };
        };
        // Boards on other ports of this host have cookies of their own.
        let name = format!("surefoot-board-{}", self.port);
        if given.is_some_and(|given| is_equal(given, token)) {
            let cookie = format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict");
            return Verdict::Enter { cookie };
        }
        let mut cookies = cookies.split(';').filter_map(|cookie| cookie.trim().split_once('='));
        match cookies.any(|(key, value)| key == name && is_equal(value, token)) {
            true => Verdict::Allowed,
            false => Verdict::NoToken,
        }
    }
}

/// 128 random bits.
fn draw_token() -> Result<String, BoardError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| BoardError::Server(error.into()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares two texts in a time that does not depend on where they differ.
fn is_equal(a: &str, b: &str) -> bool {
    let differences = a.bytes().zip(b.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_needs_no_token_but_its_own_name() {
        let access = Access::new([127, 0, 0, 1].into(), 6060).unwrap();
        assert_eq!(access.url([127, 0, 0, 1].into()), "http://127.0.0.1:6060/");
        for host in ["localhost:6060", "127.0.0.1:9999", "[::1]:6060", "localhost", "[::1]"] {
            assert_eq!(access.judge(host, "", None), Verdict::Allowed, "{host}");
        }
        for host in ["evil.example:6060", "localhost.evil.example", ""] {
            assert_eq!(access.judge(host, "", None), Verdict::ForeignHost, "{host}");
        }
    }

    #[test]
    fn other_machines_need_the_token() {
        let access = Access::new([192, 0, 2, 1].into(), 7000).unwrap();
        let url = access.url([192, 0, 2, 1].into());
        let token = url.split_once("token=").unwrap().1.to_owned();
        assert_eq!(token.len(), 32);
        assert_eq!(access.judge("x", "", None), Verdict::NoToken);
        assert_eq!(access.judge("x", "", Some("wrong")), Verdict::NoToken);
        assert_eq!(access.judge("x", "", Some(&token[..31])), Verdict::NoToken);
        assert!(matches!(access.judge("x", "", Some(&token)), Verdict::Enter { .. }));
        let cookies = format!("a=b; surefoot-board-7000={token}");
        assert_eq!(access.judge("x", &cookies, None), Verdict::Allowed);
        let other = format!("surefoot-board-7001={token}");
        assert_eq!(access.judge("x", &other, None), Verdict::NoToken);
    }
}
