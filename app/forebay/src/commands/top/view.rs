//! Which table is seen, in which order, and what keys do.

use super::panes::{Pane, Sorted};

/// Lines of a page.
const PAGE: usize = 10;

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Press {
    NextPane,
    PaneBefore,
    /// By its place.
    Pane(usize),
    /// The table is sorted by the column to the left of the one that it is sorted by.
    Left,
    Right,
    Reverse,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Pause,
    Help,
    Quit,
    /// Nothing but that everything is drawn again.
    Redraw,
}

/// What is seen.
pub(super) struct View {
    place: usize,
    sorted: [Sorted; Pane::ALL.len()],
    pub(super) row: usize,
    pub(super) is_paused: bool,
    pub(super) is_helped: bool,
}

impl Default for View {
    fn default() -> Self {
        Self { place: 0, sorted: Pane::ALL.map(Pane::sorted), row: 0, is_paused: false, is_helped: false }
    }
}

impl View {
    pub(super) fn pane(&self) -> Pane {
        Pane::ALL[self.place]
    }

    pub(super) fn sorted(&self) -> Sorted {
        self.sorted[self.place]
    }

    /// Does what a key is for, where the table has so many lines; false when that was enough.
    pub(super) fn press(&mut self, press: Press, lines: usize) -> bool {
        let (panes, columns) = (Pane::ALL.len(), self.pane().columns().len());
        let last = lines.saturating_sub(1);
        match press {
            Press::NextPane => self.show((self.place + 1) % panes),
            Press::PaneBefore => self.show((self.place + panes - 1) % panes),
            Press::Pane(place) if place < panes => self.show(place),
            Press::Left => self.sort_by(self.sorted().column + columns - 1),
            Press::Right => self.sort_by(self.sorted().column + 1),
            Press::Reverse => self.sorted[self.place].is_down ^= true,
            Press::Up => self.row = self.row.saturating_sub(1),
            Press::Down => self.row += 1,
            Press::PageUp => self.row = self.row.saturating_sub(PAGE),
            Press::PageDown => self.row += PAGE,
            Press::First => self.row = 0,
            Press::Last => self.row = last,
            Press::Pause => self.is_paused ^= true,
            Press::Help => self.is_helped ^= true,
            Press::Quit => return false,
            Press::Pane(_) | Press::Redraw => {}
        }
        self.row = self.row.min(last);
        true
    }

    fn show(&mut self, place: usize) {
        (self.place, self.row) = (place, 0);
    }

    /// What is largest, or first by name, comes first.
    fn sort_by(&mut self, column: usize) {
        let columns = self.pane().columns();
        let column = column % columns.len();
        self.sorted[self.place] = Sorted { column, is_down: columns[column].is_number };
        self.row = 0;
    }
}
