//! Layouts and IDs of other systems compared with what their authors document, and every boundary.

mod design;
mod foreign;
mod forms;
mod friendly;
mod guesses;
mod overlap;
mod rounded;
mod tally;
