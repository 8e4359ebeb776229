//! Changes of mounts, pins and tables: looked at before the database is asked, taken over once it has them.

use std::sync::Arc;

use forebay_protocol::{AdminRequest, ControlReply, Pin, TableDefinition};
use forebay_types::{Error, ForebayPath, Mount, MountId, MountName, MountOptions};

use super::event::answer;
use super::validate::check_mount;
use super::whole::failpoint;
use super::{Catalogue, Change, Command, State, Stored};

/// Every process gets all mounts and pins with each view, so there are bounds.
const MOUNTS_MAX: usize = 1000;
const PINS_MAX: usize = 10_000;
const TABLES_MAX: usize = 10_000;
const TABLE_NAME_BYTES_MAX: usize = 256;
const STATEMENT_BYTES_MAX: usize = 1 << 20;

impl State {
    /// Looks whether a change can be made, and says what to do for it.
    pub(super) fn ask_change(&self, request: AdminRequest) -> Result<Vec<Command>, Error> {
        Ok(match request {
            AdminRequest::MountAdd { name, url, options } => self.ask_mount_add(name, url, options)?,
            AdminRequest::MountSet { name, options } => self.ask_mount_set(name, options)?,
            AdminRequest::MountRemove { name } => {
                self.mount_by_name(&name)?;
                vec![Command::Write(Change::RemoveMount { name })]
            }
            AdminRequest::PinAdd { path } => self.ask_pin_add(&path)?,
            AdminRequest::PinRemove { path } => self.ask_pin_remove(&path)?,
            AdminRequest::TokenAdd { name, grant, keys } => self.ask_token_add(&name, grant, keys)?,
            AdminRequest::TokenRemove { name } => self.ask_token_remove(&name)?,
            other @ (AdminRequest::Drain { .. } | AdminRequest::Tokens) => {
                return Err(Error::internal(format!("{other:?} changes nothing")));
            }
        })
    }

    pub(super) fn ask_table_remove(&self, name: String) -> Result<Vec<Command>, Error> {
        if !self.catalogue.tables.contains_key(&name) {
            return Err(self.no_table(&name));
        }
        Ok(vec![Command::Write(Change::RemoveTable { name })])
    }

    fn ask_mount_add(&self, name: MountName, url: String, options: MountOptions) -> Result<Vec<Command>, Error> {
        if let Ok(taken) = self.mount_by_name(&name) {
            return Err(Error::conflict(format!(
                "mount {name} exists already, for {}: choose another name, or remove it first with `forebay mount rm {name}`",
                taken.url
            )));
        }
        limit("mounts", self.catalogue.mounts.len(), MOUNTS_MAX)?;
        check_mount(&name, &url, &options)?;
        let mount = Mount { id: MountId(0), name: name.clone(), url: url.clone(), options: options.clone() };
        Ok(vec![Command::Check(Box::new(mount), Change::AddMount { name, url, options })])
    }

    fn ask_mount_set(&self, name: MountName, options: MountOptions) -> Result<Vec<Command>, Error> {
        let mount = self.mount_by_name(&name)?;
        check_mount(&name, &mount.url, &options)?;
        let reached_by = |options: &MountOptions| {
            (options.endpoint.clone(), options.region.clone(), options.profile.clone(), options.anonymous, options.virtual_host)
        };
        let reached_otherwise = reached_by(&options) != reached_by(&mount.options);
        let change = Change::SetMount { name, options: options.clone() };
        // The bound can be changed while storage does not answer.
        Ok(vec![match reached_otherwise {
            true => Command::Check(Box::new(Mount { options, ..mount.clone() }), change),
            false => Command::Write(change),
        }])
    }

    fn ask_pin_add(&self, path: &ForebayPath) -> Result<Vec<Command>, Error> {
        let mount = self.mount_by_name(path.mount())?.id;
        let prefix = path.key().clone();
        if self.catalogue.pins.contains(&Pin { mount, prefix: prefix.clone() }) {
            return Ok(vec![answer(ControlReply::Done)]);
        }
        limit("pins", self.catalogue.pins.len(), PINS_MAX)?;
        Ok(vec![Command::Write(Change::AddPin { mount, prefix })])
    }

    fn ask_pin_remove(&self, path: &ForebayPath) -> Result<Vec<Command>, Error> {
        let mount = self.mount_by_name(path.mount())?;
        let prefix = path.key().clone();
        if !self.catalogue.pins.contains(&Pin { mount: mount.id, prefix: prefix.clone() }) {
            let of_mount = self.catalogue.pins.iter().filter(|pin| pin.mount == mount.id);
            let pins: Vec<String> = of_mount.map(|pin| format!("/{}/{}", mount.name, pin.prefix)).collect();
            let there = match pins.is_empty() {
                true => format!("mount {} has no pins", mount.name),
                false => format!("its pins are {}", super::lookup::list(pins.iter().map(String::as_str))),
            };
            return Err(Error::not_found(format!("there is no pin at exactly {path}: {there}")));
        }
        Ok(vec![Command::Write(Change::RemovePin { mount: mount.id, prefix })])
    }

    pub(super) fn ask_table_add(&self, table: TableDefinition, replace: bool) -> Result<Vec<Command>, Error> {
        if table.name.is_empty() || table.name.len() > TABLE_NAME_BYTES_MAX || table.statement.len() > STATEMENT_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a table's name has 1 to {TABLE_NAME_BYTES_MAX} bytes and its statement at most {STATEMENT_BYTES_MAX}"
            )));
        }
        if self.catalogue.tables.contains_key(&table.name) {
            if !replace {
                return Err(Error::conflict(format!(
                    "table {} exists already: drop it first, or CREATE OR REPLACE it",
                    table.name
                )));
            }
        } else {
            limit("external tables", self.catalogue.tables.len(), TABLES_MAX)?;
        }
        Ok(vec![Command::Write(Change::PutTable { table, replace })])
    }

    /// Takes over what the database has written, and answers whoever asked for it.
    pub(super) fn apply(&mut self, stored: Stored) -> ControlReply {
        let mut reply = ControlReply::Done;
        let catalogue = Arc::make_mut(&mut self.catalogue);
        match stored {
            Stored::Mount(mount) => {
                catalogue.mounts.insert(mount.id, mount.clone());
                failpoint(format_args!("mount {}", mount.name));
                reply = ControlReply::Mount(mount);
            }
            Stored::MountRemoved(id) => {
                catalogue.mounts.remove(&id);
                self.ledger.remove_mount(id);
                failpoint(format_args!("no mount {}", id.0));
                catalogue.pins.retain(|pin| pin.mount != id);
                let mounts = &self.catalogue.mounts;
                self.placement.retain_mounts(|mount| mounts.contains_key(&mount));
            }
            Stored::Pin(mount, prefix) => {
                let pin = Pin { mount, prefix };
                if !catalogue.pins.contains(&pin) {
                    catalogue.pins.push(pin);
                }
                failpoint(format_args!("pin"));
            }
            Stored::PinRemoved(mount, prefix) => catalogue.pins.retain(|pin| (pin.mount, &pin.prefix) != (mount, &prefix)),
            // Tables are in no view.
            Stored::Table(table) => {
                catalogue.tables.insert(table.name.clone(), table);
                failpoint(format_args!("table"));
                return reply;
            }
            Stored::TableRemoved(name) => {
                catalogue.tables.remove(&name);
                return reply;
            }
            Stored::Token(token) => return self.token_added(token),
            Stored::TokensRemoved(ids) => return self.tokens_removed(&ids),
        }
        self.view_changed();
        reply
    }

    pub(super) fn replace_catalogue(&mut self, catalogue: Catalogue) {
        if *self.catalogue == catalogue {
            return;
        }
        let gone = self.catalogue.mounts.keys().filter(|id| !catalogue.mounts.contains_key(id)).copied().collect::<Vec<_>>();
        gone.into_iter().for_each(|id| self.ledger.remove_mount(id));
        self.catalogue = Arc::new(catalogue);
        failpoint(format_args!("catalogue"));
        self.versions.credentials += 1;
        let mounts = &self.catalogue.mounts;
        self.placement.retain_mounts(|mount| mounts.contains_key(&mount));
        self.view_changed();
    }
}

pub(super) fn limit(what: &str, count: usize, max: usize) -> Result<(), Error> {
    match count < max {
        true => Ok(()),
        false => Err(Error::invalid(format!("there are {max} {what} already, and no more than that: remove some first"))),
    }
}
