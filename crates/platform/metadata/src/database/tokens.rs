//! Tokens, of which only verifiers are kept.

use forebay_types::{Error, Result, TokenKeys, Verifier};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::Database;

impl Database {
    pub(crate) async fn tokens(&self) -> Result<Vec<Verifier>> {
        let rows =
            sqlx::query("SELECT id, rights, created, stored_key, server_key FROM tokens").fetch_all(&self.inner.pool).await;
        let rows = rows.map_err(|error| self.fault(error))?;
        let mut tokens: Vec<Verifier> = rows.iter().map(|row| self.token(row)).collect::<Result<_>>()?;
        // Not by the database, whose collations differ.
        tokens.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(tokens)
    }

    pub(crate) async fn add_token(&self, token: &Verifier) -> Result<()> {
        let rights = serde_json::to_string(&token.grant).map_err(|error| Error::internal(error.to_string()))?;
        let mut transaction = self.write().await?;
        let token_row = sqlx::query(
            "INSERT INTO tokens (id, rights, created, stored_key, server_key) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING",
        )
        .bind(&token.id)
        .bind(rights)
        .bind(i64::try_from(token.created).unwrap_or(i64::MAX))
        .bind(token.keys.stored.as_slice())
        .bind(token.keys.server.as_slice());
        if self.run(token_row, &mut transaction).await? == 0 {
            return Err(Error::conflict(format!("token {} exists already", token.id)));
        }
        self.commit(transaction).await
    }

    pub(crate) async fn remove_tokens(&self, ids: &[String]) -> Result<()> {
        let mut transaction = self.write().await?;
        for id in ids {
            self.run(sqlx::query("DELETE FROM tokens WHERE id = $1").bind(id), &mut transaction).await?;
        }
        self.commit(transaction).await
    }

    fn token(&self, row: &AnyRow) -> Result<Verifier> {
        let text = |column: &str| row.try_get::<String, _>(column).map_err(|error| self.fault(error));
        let (id, rights) = (text("id")?, text("rights")?);
        let unreadable = |what: String| {
            Error::invalid(format!("token {id} can't be read by this version: {what}: run the version that wrote it"))
        };
        let grant = serde_json::from_str(&rights).map_err(|error| unreadable(error.to_string()))?;
        let created: i64 = row.try_get("created").map_err(|error| self.fault(error))?;
        let key = |column: &str| {
            let bytes: Vec<u8> = row.try_get(column).map_err(|error| self.fault(error))?;
            bytes.try_into().map_err(|_| unreadable(format!("{column} has not 32 bytes")))
        };
        let keys = TokenKeys { stored: key("stored_key")?, server: key("server_key")? };
        Ok(Verifier { id: id.clone(), grant, created: u64::try_from(created).unwrap_or(0), keys })
    }
}
