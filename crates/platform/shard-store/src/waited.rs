//! Whether somebody waits for what is being answered on a thread: an argument that all ways to a search would hand on.

use std::cell::RefCell;
use std::rc::Rc;

use forebay_types::Result;

/// What a search asks every now and then.
type GoOn = Rc<dyn Fn() -> Result<()>>;

thread_local!(static GO_ON: RefCell<Option<GoOn>> = const { RefCell::new(None) });

/// Does `work`, in which searches of this thread go on as long as `go_on` says so, and end with its error.
pub fn while_waited<T>(go_on: impl Fn() -> Result<()> + 'static, work: impl FnOnce() -> T) -> T {
    struct Before(Option<GoOn>);
    impl Drop for Before {
        fn drop(&mut self) {
            GO_ON.set(self.0.take());
        }
    }
    let _before = Before(GO_ON.replace(Some(Rc::new(go_on))));
    work()
}

/// Whether the search that this thread makes goes on.
pub(crate) fn go_on() -> Result<()> {
    let go_on = GO_ON.with_borrow(Clone::clone);
    go_on.map_or(Ok(()), |go_on| go_on())
}
