//! What automerge's bytes would become, reckoned before automerge sees them. A few bytes can stand for billions of
//! operations (runs) or for gigabytes (deflated columns, which our documents don't have); a document that grows beyond
//! what a cluster needs is refused here.

use crate::bytes::{Bytes, Cut};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    #[error("the document isn't one whole automerge document chunk")]
    Shape,
    #[error("the document would grow beyond what is allowed: {0}")]
    Grows(&'static str),
}

/// Operations of all changes, or references between them: a new epoch with 2,000 registers and 200 changes stays below 5,000.
const MAX_ITEMS: u64 = 20_000;
/// An epoch has 200 changes, some more when documents merge.
const MAX_CHANGES: u64 = 1_000;
/// All values together.
const MAX_VALUES: u64 = 1024 * 1024;
/// Every process start is an actor.
const MAX_ACTORS: u64 = MAX_CHANGES;
const MAX_HEADS: u64 = 64;
/// Automerge 0.12 writes 9 columns of changes and 15 of operations.
const MAX_COLUMNS: u64 = 40;

const MAGIC: [u8; 4] = [0x85, 0x6f, 0x4a, 0x83];
const DOCUMENT: u8 = 0;
/// In a column's number: its kind, whether it is deflated, and then its id.
const KIND: u64 = 0b0111;
const DEFLATED: u64 = 0b1000;
/// Columns of changes: their last operation, their time, and which changes they build on (how many, which).
const LAST_OPERATION: u64 = 1;
const TIME: u64 = 2;
const BUILT_ON: u64 = 4;
const GROUP: u64 = 0;
const DELTA: u64 = 3;

/// Passes a document that one automerge load can take.
pub(crate) fn check(bytes: &[u8]) -> Result<(), GuardError> {
    let mut input = Bytes(bytes);
    if input.take(4)? != MAGIC {
        return Err(GuardError::Shape);
    }
    input.take(4)?;
    if input.byte()? != DOCUMENT {
        return Err(GuardError::Shape);
    }
    let length = usize::try_from(input.unsigned()?).map_err(|_| GuardError::Shape)?;
    let mut chunk = Bytes(input.take(length)?);
    if !input.is_empty() {
        return Err(GuardError::Shape);
    }
    let actors = bounded(chunk.unsigned()?, MAX_ACTORS, "actors")?;
    for _ in 0..actors {
        let length = bounded(chunk.unsigned()?, 64, "an actor's name")?;
        chunk.take(length)?;
    }
    let heads = bounded(chunk.unsigned()?, MAX_HEADS, "heads")?;
    chunk.take(heads * 32)?;
    let changes = columns(&mut chunk)?;
    let operations = columns(&mut chunk)?;
    let mut history = History::default();
    for (number, length) in changes {
        let data = chunk.take(length)?;
        walk(Part::Changes, number, data)?;
        history.keep(number, data)?;
    }
    for (number, length) in operations {
        let data = chunk.take(length)?;
        walk(Part::Operations, number, data)?;
    }
    history.check()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Changes,
    Operations,
}

/// How many operations each change claims: automerge makes room for all of them before it reads one.
#[derive(Default)]
struct History {
    last_operations: Vec<i64>,
    parents: Vec<i64>,
    parent_counts: Vec<i64>,
}

impl History {
    fn keep(&mut self, number: u64, data: &[u8]) -> Result<(), GuardError> {
        match (number >> 4, number & KIND) {
            (LAST_OPERATION, DELTA) => self.last_operations = expand(data, DELTA, MAX_CHANGES)?,
            (BUILT_ON, GROUP) => self.parent_counts = expand(data, GROUP, MAX_CHANGES)?,
            (BUILT_ON, DELTA) => self.parents = expand(data, DELTA, MAX_ITEMS)?,
            _ => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), GuardError> {
        let mut parents = self.parents.iter();
        let mut claimed = 0_u64;
        for (index, last) in self.last_operations.iter().enumerate() {
            let count = self.parent_counts.get(index).copied().unwrap_or(0);
            let mut before = 0;
            for _ in 0..count {
                let parent = usize::try_from(*parents.next().ok_or(GuardError::Shape)?);
                let of_parent = parent.ok().and_then(|parent| self.last_operations.get(parent));
                before = before.max(*of_parent.ok_or(GuardError::Shape)?);
            }
            let made = u64::try_from(last - before).map_err(|_| GuardError::Shape)?;
            claimed = claimed.saturating_add(made);
            bounded(claimed, MAX_ITEMS, "operations")?;
        }
        Ok(())
    }
}

/// The numbers of a column, written out; `walk` has bounded them.
fn expand(data: &[u8], kind: u64, most: u64) -> Result<Vec<i64>, GuardError> {
    let (mut data, mut out, mut last) = (Bytes(data), Vec::new(), 0_i64);
    while !data.is_empty() {
        let run = data.signed()?;
        if run == 0 {
            return Err(GuardError::Shape);
        }
        let (repeats, values) = if run > 0 { (run, 1) } else { (1, run.unsigned_abs()) };
        bounded((out.len() as u64).saturating_add(run.unsigned_abs()), most, "changes")?;
        for _ in 0..values {
            let value = if kind == GROUP { data.unsigned()?.cast_signed() } else { data.signed()? };
            for _ in 0..repeats {
                last = if kind == GROUP { value } else { last.saturating_add(value) };
                out.push(last);
            }
        }
    }
    Ok(out)
}

fn columns(chunk: &mut Bytes<'_>) -> Result<Vec<(u64, usize)>, GuardError> {
    let count = bounded(chunk.unsigned()?, MAX_COLUMNS, "columns")?;
    let mut out: Vec<(u64, usize)> = Vec::with_capacity(count);
    for _ in 0..count {
        let number = chunk.unsigned()?;
        // Two columns of one name could be read by us in one way and by automerge in the other.
        if number & DEFLATED != 0 || out.last().is_some_and(|(last, _)| *last >= number) {
            return Err(GuardError::Shape);
        }
        out.push((number, usize::try_from(chunk.unsigned()?).map_err(|_| GuardError::Shape)?));
    }
    Ok(out)
}

/// Counts the items of a column without making them.
fn walk(part: Part, number: u64, data: &[u8]) -> Result<(), GuardError> {
    let mut data = Bytes(data);
    match number & KIND {
        7 => Ok(()),
        4 => booleans(&mut data),
        kind => {
            let is_time = part == Part::Changes && number >> 4 == TIME;
            runs(&mut data, Item { kind, is_time })
        }
    }
}

fn booleans(data: &mut Bytes<'_>) -> Result<(), GuardError> {
    let mut items = 0_u64;
    while !data.is_empty() {
        items = items.saturating_add(data.unsigned()?);
        bounded(items, MAX_ITEMS, "operations")?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Item {
    kind: u64,
    is_time: bool,
}

/// What the values of a column came to so far.
#[derive(Default)]
struct Sum {
    items: u64,
    counter: i64,
    grouped: u64,
}

fn runs(data: &mut Bytes<'_>, item: Item) -> Result<(), GuardError> {
    let mut sum = Sum::default();
    while !data.is_empty() {
        let run = data.signed()?;
        sum.items = sum.items.saturating_add(run.unsigned_abs());
        if run == 0 {
            sum.items = sum.items.saturating_add(data.unsigned()?);
        }
        bounded(sum.items, MAX_ITEMS, "operations")?;
        if run > 0 {
            value(data, item, run, &mut sum)?;
        }
        for _ in run..0 {
            value(data, item, 1, &mut sum)?;
        }
    }
    Ok(())
}

fn value(data: &mut Bytes<'_>, item: Item, times: i64, sum: &mut Sum) -> Result<(), GuardError> {
    match item.kind {
        // How many items of the columns beside it belong to each: their sum is what grows.
        GROUP => {
            let each = data.unsigned()?;
            sum.grouped = sum.grouped.saturating_add(each.saturating_mul(times.unsigned_abs()));
            bounded(sum.grouped, MAX_ITEMS, "dependencies")?;
        }
        DELTA if item.is_time => {
            data.signed()?;
        }
        // Differences: the counter that they add up to names an operation.
        DELTA => {
            let step = data.signed()?;
            let first = sum.counter.saturating_add(step);
            sum.counter = sum.counter.saturating_add(step.saturating_mul(times));
            for reached in [first, sum.counter] {
                bounded(u64::try_from(reached).map_err(|_| GuardError::Shape)?, MAX_ITEMS, "counters")?;
            }
        }
        5 => {
            let length = usize::try_from(data.unsigned()?).map_err(|_| GuardError::Shape)?;
            data.take(length)?;
        }
        // Sizes of values: a run of big ones would ask for more than the bytes there are.
        6 => {
            let bytes = data.unsigned()? >> 4;
            sum.grouped = sum.grouped.saturating_add(bytes.saturating_mul(times.unsigned_abs()));
            bounded(sum.grouped, MAX_VALUES, "the size of its values")?;
        }
        _ => {
            bounded(data.unsigned()?, MAX_ITEMS, "counters")?;
        }
    }
    Ok(())
}

fn bounded(number: u64, most: u64, what: &'static str) -> Result<usize, GuardError> {
    let fits = usize::try_from(number).ok().filter(|_| number <= most);
    fits.ok_or(GuardError::Grows(what))
}

impl From<Cut> for GuardError {
    fn from(_: Cut) -> GuardError {
        GuardError::Shape
    }
}
