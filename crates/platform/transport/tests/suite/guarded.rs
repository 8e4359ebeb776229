//! Other protocols' connections behind the cluster's credentials and TLS.

use forebay_transport::{Guard, Guarded, Security};
use forebay_types::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn with(secret: Option<&str>) -> Security {
    secret.map_or_else(Security::default, |secret| Security::owner(secret).unwrap())
}

/// Whether a byte goes there and back between ends with these tokens.
async fn goes(server: Option<&'static str>, client: Option<&str>) -> Result<(), ErrorKind> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut guarded = Guard::new(&with(server)).unwrap().admit(stream).await?;
        let byte = guarded.read_u8().await.unwrap();
        guarded.write_u8(byte + 1).await.unwrap();
        guarded.flush().await.unwrap();
        Ok::<_, forebay_types::Error>(())
    });
    let mut guarded = Guarded::connect(&address, &with(client)).await.map_err(|error| error.kind())?;
    guarded.write_u8(7).await.unwrap();
    guarded.flush().await.unwrap();
    assert_eq!(guarded.read_u8().await.unwrap(), 8);
    serving.await.unwrap().map_err(|error| error.kind())
}

#[tokio::test]
async fn only_who_knows_the_secret_gets_in() {
    assert_eq!(goes(Some("a secret of ours"), Some("a secret of ours")).await, Ok(()));
    assert_eq!(goes(None, None).await, Ok(()));
    assert_eq!(goes(Some("a secret of ours"), Some("a guess of theirs")).await, Err(ErrorKind::Denied));
    assert_eq!(goes(Some("a secret of ours"), None).await, Err(ErrorKind::Denied));
    assert_eq!(
        goes(None, Some("a secret of ours")).await,
        Err(ErrorKind::Denied),
        "the client does not trust who can't prove it"
    );
}

#[tokio::test]
async fn a_stranger_is_not_let_in() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        Guard::new(&with(Some("a secret of ours"))).unwrap().admit(stream).await.map(|_| ())
    });
    let mut stranger = tokio::net::TcpStream::connect(address).await.unwrap();
    stranger.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n and more than any hello is long").await.unwrap();
    assert_eq!(serving.await.unwrap().unwrap_err().kind(), ErrorKind::Denied);
}
