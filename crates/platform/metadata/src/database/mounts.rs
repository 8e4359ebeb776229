//! Mounts.

use forebay_types::{Error, Mount, MountId, MountName, MountOptions, Result};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::Database;
use super::counters::Counter;

/// What a clock says at most, however far ahead it is: a number that is in the database stays there.
const CLOCK_MS_MAX: u64 = 1 << 52;

impl Database {
    pub(crate) async fn mounts(&self) -> Result<Vec<Mount>> {
        let rows = sqlx::query("SELECT id, name, url, options FROM mounts ORDER BY id").fetch_all(&self.inner.pool).await;
        rows.map_err(|error| self.fault(error))?.iter().map(|row| self.mount(row)).collect()
    }

    pub(crate) async fn add_mount(&self, name: &MountName, url: &str, options: &MountOptions) -> Result<Mount> {
        if url.contains('\0') {
            return Err(Error::invalid(format!("mount {name}: its URL holds a NUL byte")));
        }
        let mut transaction = self.write().await?;
        // A database that was restored does not know of all mounts that there were, and what is cached of one must never be taken for
        // another's: milliseconds go on where it has stopped.
        let floor = forebay_runtime::time::unix_ms().min(CLOCK_MS_MAX);
        let id = MountId(self.next(Counter::MountId, floor, &mut transaction).await?);
        let mount =
            sqlx::query("INSERT INTO mounts (id, name, url, options) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING");
        let mount = mount.bind(id.0 as i64).bind(name.as_str()).bind(url).bind(to_json(options));
        if self.run(mount, &mut transaction).await? == 0 {
            return Err(Error::conflict(format!("mount {name} exists already: choose another name, or remove that one first")));
        }
        self.commit(transaction).await?;
        Ok(Mount { id, name: name.clone(), url: url.to_string(), options: options.clone() })
    }

    pub(crate) async fn set_mount_options(&self, name: &MountName, options: &MountOptions) -> Result<Mount> {
        let mut transaction = self.write().await?;
        let mount = sqlx::query("UPDATE mounts SET options = $1 WHERE name = $2 RETURNING id, name, url, options");
        let row = self.row(mount.bind(to_json(options)).bind(name.as_str()), &mut transaction).await?;
        let Some(row) = row else { return Err(no_mount(name)) };
        let mount = self.mount(&row)?;
        self.commit(transaction).await?;
        Ok(mount)
    }

    pub(crate) async fn remove_mount(&self, name: &MountName) -> Result<Mount> {
        let mut transaction = self.write().await?;
        let mount = sqlx::query("DELETE FROM mounts WHERE name = $1 RETURNING id, name, url, options").bind(name.as_str());
        let Some(row) = self.row(mount, &mut transaction).await? else { return Err(no_mount(name)) };
        let mount = self.mount(&row)?;
        let pins = sqlx::query("DELETE FROM pins WHERE mount_id = $1").bind(mount.id.0 as i64);
        self.run(pins, &mut transaction).await?;
        self.commit(transaction).await?;
        Ok(mount)
    }

    fn mount(&self, row: &AnyRow) -> Result<Mount> {
        let text = |column: &str| row.try_get::<String, _>(column).map_err(|error| self.fault(error));
        let id: i64 = row.try_get("id").map_err(|error| self.fault(error))?;
        let (name, options) = (text("name")?, text("options")?);
        let options = serde_json::from_str(&options).map_err(|error| {
            Error::invalid(format!(
                "mount {name} has options that this version can't read: {error}: run the version that wrote them"
            ))
        })?;
        Ok(Mount { id: MountId(id as u64), name: name.parse()?, url: text("url")?, options })
    }
}

/// Without the options that are not set: one that an older version does not know keeps it from no mount that has none of it.
fn to_json(options: &MountOptions) -> String {
    let mut options = serde_json::to_value(options).expect("options are plain data");
    if let Some(options) = options.as_object_mut() {
        options.retain(|_, value| !value.is_null());
    }
    options.to_string()
}

fn no_mount(name: &MountName) -> Error {
    Error::not_found(format!("there is no mount {name}"))
}
