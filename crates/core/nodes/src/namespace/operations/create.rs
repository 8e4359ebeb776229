//! Making a node, or the name of a container whose nodes are elsewhere, and how long a node stays that nobody keeps.

use std::time::Duration;

use crate::namespace::{Namespace, Table};
use crate::node::{File, Flags, Node};
use crate::terms::{Affinity, DirId, Location, NodeError, NodeErrorKind, NodeResult, NodeType, StorageClass, check_name};

/// What there must be room for beside a new node's name.
const ROOM_BYTES: u64 = 256;

/// How a node is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateOptions {
    /// What it is.
    pub kind: NodeType,
    /// Whether listings and bags show it.
    pub enumerable: bool,
    /// Where its blocks may lie; as in its container when nothing is said.
    pub class: Option<StorageClass>,
    /// Which workers they ask for; as in its container when nothing is said.
    pub location: Option<Location>,
}

impl CreateOptions {
    /// A node of this type that listings show and that lies where its container says.
    pub fn new(kind: NodeType) -> Self {
        Self { kind, enumerable: true, class: None, location: None }
    }

    /// Where its blocks lie in a container.
    fn within(&self, container: &Affinity) -> Affinity {
        Affinity {
            class: self.class.unwrap_or(container.class),
            location: self.location.clone().unwrap_or_else(|| container.location.clone()),
        }
    }
}

impl Namespace {
    /// Whether a node may be made under this name: `Exists`, `WrongType`, `NoSpace`, and where its blocks are to lie. A
    /// key-value may be where a key-value is: who comes last wins.
    pub fn check_create(&self, dir: DirId, name: &str, options: &CreateOptions) -> NodeResult<Affinity> {
        check_name(name)?;
        let table = self.open_table(dir)?;
        table.check_holds(options.kind)?;
        match table.find(name) {
            Some(old) if options.kind == NodeType::KeyValue && old.kind() == NodeType::KeyValue && !old.flags().is_moving() => {}
            Some(old) => return Err(exists(name, old.kind())),
            None => {
                self.check_free(dir, name)?;
                self.check_room(name.len() as u64 + ROOM_BYTES)?;
            }
        }
        Ok(options.within(&table.affinity))
    }

    /// Makes an empty node, a container with its nodes here. No block is needed for it.
    pub fn create(&mut self, dir: DirId, name: &str, options: CreateOptions) -> NodeResult<()> {
        if options.kind == NodeType::File {
            return self.create_file(dir, name, &options);
        }
        let affinity = self.check_create(dir, name, &options)?;
        let flags = Flags::new(options.enumerable, affinity.class, self.label(&affinity.location)?);
        self.whole(|names| {
            let node = match options.kind {
                // Where another one is, too.
                NodeType::KeyValue => return names.insert(dir, name, Node::Small(flags, Box::default())),
                kind => {
                    let id = names.allocate();
                    names.step_table(id, Some(Table::new(kind, affinity, dir)));
                    Node::Container(flags, Box::new((kind, id)))
                }
            };
            names.place_new(dir, name, node);
            Ok(())
        })
    }

    /// The same of a file, with one look for its name: nothing is made as often.
    fn create_file(&mut self, dir: DirId, name: &str, options: &CreateOptions) -> NodeResult<()> {
        let flags = match self.flags_of_file(dir, name, options) {
            Ok(flags) => flags,
            // That there is a node already is said first.
            Err(error) => return self.check_create(dir, name, options).and(Err(error)),
        };
        self.whole(|names| {
            let file = Node::File(flags, Box::new(File::new(names.number())));
            match names.place_if_free(dir, name, file) {
                None => Ok(()),
                Some(kind) => Err(exists(name, kind)),
            }
        })
    }

    /// Those of a new file, when nothing but a node of its name is in its way.
    fn flags_of_file(&mut self, dir: DirId, name: &str, options: &CreateOptions) -> NodeResult<Flags> {
        check_name(name)?;
        let table = self.open_table(dir)?;
        table.check_holds(NodeType::File)?;
        let affinity = options.within(&table.affinity);
        // What fails leaves nothing, no label of a location either.
        if !affinity.location.is_anywhere()
            && let Some(old) = table.find(name)
        {
            return Err(exists(name, old.kind()));
        }
        self.check_free(dir, name)?;
        self.check_room(name.len() as u64 + ROOM_BYTES)?;
        Ok(Flags::new(options.enumerable, affinity.class, self.label(&affinity.location)?))
    }

    /// Makes the name of a container whose nodes are elsewhere (or were made with [`Self::adopt`]). `Retry` where a quota wants them
    /// here ([`Self::is_bounded`]).
    pub fn link(&mut self, dir: DirId, name: &str, options: CreateOptions, id: DirId) -> NodeResult<()> {
        let affinity = self.check_create(dir, name, &options)?;
        if self.is_bounded(dir) && !self.has(id) {
            return Err(NodeError::new(NodeErrorKind::Retry, format!("{name:?} is made below a quota by now: try again")));
        }
        let flags = Flags::new(options.enumerable, affinity.class, self.label(&affinity.location)?);
        self.whole(|names| names.place_new(dir, name, Node::Container(flags, Box::new((options.kind, id)))));
        Ok(())
    }

    /// Makes a container's nodes be here, while its name is to be made elsewhere.
    pub fn adopt(&mut self, kind: NodeType, affinity: Affinity, parent: DirId) -> NodeResult<DirId> {
        self.check_room(ROOM_BYTES)?;
        let id = self.allocate();
        self.whole(|names| names.step_table(id, Some(Table::new(kind, affinity, parent))));
        Ok(id)
    }

    /// The node goes away, with all that is in it, unless this is called again before `until`. None: it stays.
    pub fn set_lease(&mut self, dir: DirId, name: &str, until: Option<Duration>) -> NodeResult<()> {
        let mut flags = self.node(dir, name)?.flags();
        flags.set_leased(until.is_some());
        self.whole(|names| {
            names.step_flags(dir, name, flags);
            names.step_lease(dir, name, until);
        });
        Ok(())
    }

    /// The nodes whose leases are over.
    pub fn expired(&self, now: Duration) -> Vec<(DirId, String)> {
        let over = self.leases.iter().filter(|(_, until)| **until <= now);
        over.map(|((dir, name), _)| (*dir, name.to_string())).collect()
    }
}

fn exists(name: &str, kind: NodeType) -> NodeError {
    NodeError::new(NodeErrorKind::Exists, format!("{name:?} exists already and is a {kind}"))
}
