//! Pins of the administrator.

use forebay_types::{Error, Key, MountId, Result};
use sqlx::Row;

use super::Database;

impl Database {
    pub(crate) async fn pins(&self) -> Result<Vec<(MountId, Key)>> {
        let rows = sqlx::query("SELECT mount_id, prefix FROM pins ORDER BY mount_id, prefix").fetch_all(&self.inner.pool).await;
        let pin = |row: &sqlx::any::AnyRow| {
            let mount: i64 = row.try_get(0).map_err(|error| self.fault(error))?;
            let prefix: Vec<u8> = row.try_get(1).map_err(|error| self.fault(error))?;
            let prefix = String::from_utf8(prefix).map_err(|_| Error::corrupt("a pin in the metadata database is no UTF-8"))?;
            Ok((MountId(mount as u64), Key::new(prefix)?))
        };
        rows.map_err(|error| self.fault(error))?.iter().map(pin).collect()
    }

    pub(crate) async fn add_pin(&self, mount: MountId, prefix: &Key) -> Result<()> {
        let mut transaction = self.write().await?;
        let mounted = sqlx::query("SELECT id FROM mounts WHERE id = $1").bind(mount.0 as i64);
        if self.row(mounted, &mut transaction).await?.is_none() {
            return Err(Error::not_found(format!("the mount of pin {prefix:?} was removed")));
        }
        let pin = sqlx::query("INSERT INTO pins (mount_id, prefix) VALUES ($1, $2) ON CONFLICT DO NOTHING");
        self.run(pin.bind(mount.0 as i64).bind(prefix.as_str().as_bytes()), &mut transaction).await?;
        self.commit(transaction).await
    }

    pub(crate) async fn remove_pin(&self, mount: MountId, prefix: &Key) -> Result<()> {
        let mut transaction = self.write().await?;
        let pin = sqlx::query("DELETE FROM pins WHERE mount_id = $1 AND prefix = $2");
        if self.run(pin.bind(mount.0 as i64).bind(prefix.as_str().as_bytes()), &mut transaction).await? == 0 {
            return Err(Error::not_found(format!("there is no pin of exactly {prefix:?}")));
        }
        self.commit(transaction).await
    }
}
