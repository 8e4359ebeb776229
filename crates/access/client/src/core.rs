use std::sync::Arc;

use forebay_types::{Error, ForebayPath, Mount, MountId, Result};
use tokio_util::task::AbortOnDropHandle;

use crate::bring::Places;
use crate::cells::KnownCells;
use crate::connections::Connections;
use crate::control::Control;
use crate::counters::Counters;
use crate::fallback::Fallback;
use crate::in_place::PinCache;
use crate::nodes::{FullWorkers, Paths};
use crate::patience::Patience;
use crate::prefetch::Prefetches;
use crate::queues::Queues;
use crate::route::Failures;
use crate::settings::ClientSettings;
use crate::view::ViewKeeper;

/// What all clones of a client share. The tasks end with it.
pub(crate) struct Core {
    pub(crate) settings: ClientSettings,
    pub(crate) control: Arc<Control>,
    pub(crate) view: Arc<ViewKeeper>,
    pub(crate) failures: Failures,
    pub(crate) queues: Queues,
    pub(crate) connections: Arc<Connections>,
    pub(crate) pins: Arc<PinCache>,
    pub(crate) prefetches: Prefetches,
    pub(crate) places: Places,
    pub(crate) fallback: Fallback,
    pub(crate) counters: Counters,
    pub(crate) patience: Patience,
    pub(crate) paths: Paths,
    pub(crate) full_workers: FullWorkers,
    pub(crate) known_cells: KnownCells,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl Core {
    /// Connects to the coordinator and takes its view.
    pub(crate) async fn connect(settings: ClientSettings) -> Result<Self> {
        let control = Arc::new(Control::new(&settings));
        let view = Arc::new(ViewKeeper::new(Arc::clone(&control)));
        view.poll().await?;
        let pins = Arc::new(PinCache::new(settings.pins_max, settings.pin_idle));
        let connections = Arc::new(Connections::new(settings.clone(), Arc::clone(&pins)));
        let tasks = [
            AbortOnDropHandle::new(tokio::spawn(Arc::clone(&view).run(settings.view_poll, Arc::clone(&connections)))),
            AbortOnDropHandle::new(tokio::spawn(Arc::clone(&pins).run())),
        ];
        Ok(Self {
            connections,
            patience: Patience::new(settings.read_deadline),
            fallback: Fallback::new(settings.storage.clone(), Arc::clone(&control)),
            settings,
            control,
            view,
            failures: Failures::default(),
            queues: Queues::default(),
            pins,
            prefetches: Prefetches::default(),
            places: Places::default(),
            counters: Counters::default(),
            paths: Paths::default(),
            full_workers: FullWorkers::new(),
            known_cells: KnownCells::default(),
            _tasks: tasks,
        })
    }

    /// The mount that a path names.
    pub(crate) async fn mount(&self, path: &ForebayPath) -> Result<Arc<Mount>> {
        self.view.mount(path.mount()).await
    }

    /// The bandwidth bound of a mount in bytes a second, where it has one.
    pub(crate) fn bound(&self, id: MountId) -> Option<u64> {
        self.view.known().mount(id)?.options.bandwidth.map(|rate| rate.bytes_per_sec())
    }

    /// The mount of an id, as versions carry it; `NotFound` once it was removed.
    pub(crate) fn mount_of(&self, id: MountId) -> Result<Arc<Mount>> {
        self.view
            .known()
            .mount(id)
            .cloned()
            .ok_or_else(|| Error::not_found(format!("mount {} was removed: add it again and open its objects anew", id.0)))
    }

    /// `/MOUNT/KEY` for messages.
    pub(crate) fn path_text(&self, mount: MountId, key: &forebay_types::Key) -> String {
        match self.view.known().mount(mount) {
            Some(mount) => format!("/{}/{key}", mount.name),
            None => format!("/(mount {})/{key}", mount.0),
        }
    }
}
