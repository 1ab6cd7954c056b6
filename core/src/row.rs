//! Rows in which one stands by one's turn.

/// What is sorted. Of a long row the first goes most often; but the code for that is a good part of what browsers are sent,
/// where rows are short.
#[cfg(not(target_family = "wasm"))]
pub(crate) type Row<T> = std::collections::VecDeque<T>;
#[cfg(target_family = "wasm")]
pub(crate) type Row<T> = Vec<T>;

/// Takes out who stands at this place, where somebody does.
pub(crate) fn take_out<T>(row: &mut Row<T>, at: usize) -> Option<T> {
    #[cfg(not(target_family = "wasm"))]
    return row.remove(at);
    #[cfg(target_family = "wasm")]
    Some(row.remove(at))
}
