//! Layouts and IDs of other systems compared with what their authors document, and every boundary.

mod foreign;
mod friendly;
mod guesses;
mod overlap;
mod rounded;
