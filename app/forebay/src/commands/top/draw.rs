//! One picture of what is known: nothing else decides what is seen.

use forebay_types::format_bytes;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, TableState};

use super::history::{History, Of, Rates};
use super::panes::{self, Column, Pane};
use super::sample::Sample;
use super::text::{happening, heading, warnings};
use super::view::View;

pub(super) struct Picture<'a> {
    pub(super) view: &'a View,
    pub(super) history: &'a History,
    /// The last look; none before the first one.
    pub(super) sample: Option<&'a Sample>,
    /// Why there is none later.
    pub(super) wrong: Option<&'a str>,
}

/// A line over time: what it is called, and what it is of.
type Series = (&'static str, fn(&Rates) -> u64);

const SERIES: [Series; 3] = [
    ("served", |rates| rates.served_bytes),
    ("from the tiers", |rates| rates.hit_bytes),
    ("from shared storage", |rates| rates.received_bytes),
];
/// Widest column but the last.
const WIDTH_MAX: usize = 48;
const KEYS: &str = "Tab table   Left Right sorted by   r reversed   Up Down line   p pause   ? help   q quit";
const HELP: [&str; 8] = [
    "Tab, Shift-Tab, 1 to 5    another table",
    "Left, Right, < and >      sort by another column",
    "r                         the other way round",
    "Up, Down, Page, Home, End go through the lines",
    "p, Space                  keep this picture, or go on",
    "?, h                      this, or the table",
    "q, Esc, Ctrl-C            quit",
    "Rates are those between two looks; workers report once a second.",
];

pub(super) fn draw(frame: &mut Frame<'_>, picture: &Picture<'_>) {
    let rows = [Constraint::Length(2), Constraint::Length(5), Constraint::Length(1), Constraint::Min(3), Constraint::Length(1)];
    let [head, series, tabs, table, foot] = Layout::vertical(rows).areas(frame.area());
    draw_head(frame, head, picture);
    draw_series(frame, series, picture.history);
    frame.render_widget(tabs_of(picture), tabs);
    match picture.sample {
        _ if picture.view.is_helped => frame.render_widget(Paragraph::new(HELP.map(Line::from).to_vec()), table),
        Some(sample) => draw_table(frame, table, picture, sample),
        None => frame.render_widget(Paragraph::new("waiting for the coordinator"), table),
    }
    frame.render_widget(Line::from(KEYS).dim(), foot);
}

/// Whose cluster this is; and what is wrong, or what happens.
fn draw_head(frame: &mut Frame<'_>, area: Rect, picture: &Picture<'_>) {
    let mut first = picture.sample.map(heading).unwrap_or_else(|| "forebay top".to_string());
    if picture.view.is_paused {
        first += ", paused";
    }
    let warning = || picture.sample.and_then(|sample| warnings(sample).into_iter().next());
    let second = match (picture.wrong, warning()) {
        (Some(wrong), _) => Line::from(wrong.to_string()).red().bold(),
        (None, Some(warning)) => Line::from(warning).bold(),
        (None, None) => Line::from(picture.history.now(&Of::Cluster).map(|rates| happening(&rates)).unwrap_or_default()),
    };
    frame.render_widget(Paragraph::new(vec![Line::from(first).bold(), second]), area);
}

fn draw_series(frame: &mut Frame<'_>, area: Rect, history: &History) {
    let areas: [Rect; SERIES.len()] = Layout::horizontal([Constraint::Fill(1); SERIES.len()]).areas(area);
    for ((name, what), area) in SERIES.into_iter().zip(areas) {
        let series = history.series(&Of::Cluster, what);
        let now = series.last().map_or_else(String::new, |now| format!(" {}/s", format_bytes(*now)));
        let block = Block::bordered().title(format!("{name}{now}"));
        // The newest ones, as many as there is room for.
        let seen = usize::from(area.width.saturating_sub(2));
        let last = series[series.len().saturating_sub(seen)..].to_vec();
        frame.render_widget(Sparkline::default().block(block).data(last), area);
    }
}

/// The tables, with how many lines each has.
fn tabs_of(picture: &Picture<'_>) -> Line<'static> {
    let mut spans = Vec::new();
    for (at, pane) in Pane::ALL.into_iter().enumerate() {
        let count = picture.sample.map(|sample| format!(" {}", pane.count(sample))).unwrap_or_default();
        let name = format!(" {} {}{count} ", at + 1, pane.name());
        let is_seen = pane == picture.view.pane();
        spans.push(if is_seen { Span::from(name).reversed().bold() } else { Span::from(name) });
        spans.push(Span::from(" "));
    }
    Line::from(spans)
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, picture: &Picture<'_>, sample: &Sample) {
    let (pane, sorted) = (picture.view.pane(), picture.view.sorted());
    let (columns, lines) = (pane.columns(), pane.lines(sample, picture.history, sorted));
    let titles: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| match at == sorted.column {
            true => format!("{}{}", column.title, if sorted.is_down { '▼' } else { '▲' }),
            false => column.title.to_string(),
        })
        .collect();
    let header = Row::new(titles.iter().zip(columns).map(|(title, column)| cell(title, column))).style(Style::new().bold());
    let rows = lines.iter().map(|line| {
        let is_lost = line.iter().any(|cell| ["lost", "failed"].contains(&cell.shown.as_str()));
        let row = Row::new(line.iter().zip(columns).map(|(shown, column)| cell(&shown.shown, column)));
        if is_lost { row.style(Style::new().red().bold()) } else { row }
    });
    let table = Table::new(rows, widths(&titles, &lines)).header(header).column_spacing(2);
    let table = table.row_highlight_style(Style::new().reversed());
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(Some(picture.view.row)));
}

fn cell<'a>(shown: &'a str, column: &Column) -> Cell<'a> {
    let line = Line::from(shown);
    Cell::new(if column.is_number { line.right_aligned() } else { line })
}

/// As wide as what stands in it; the last column takes what is left.
fn widths(titles: &[String], lines: &[Vec<panes::Cell>]) -> Vec<Constraint> {
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].shown.chars().count());
        cells.chain([titles[column].chars().count()]).max().unwrap_or_default().min(WIDTH_MAX)
    };
    let last = titles.len().saturating_sub(1);
    let of = |column| if column == last { Constraint::Fill(1) } else { Constraint::Length(width(column) as u16) };
    (0..titles.len()).map(of).collect()
}
