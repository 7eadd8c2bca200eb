//! Two buffers shared with the page: one for queries, one for answers.
#![allow(
    unsafe_code,
    reason = "names for the page to call; nothing in here reads raw memory"
)]

use std::cell::RefCell;

thread_local! {
    static QUESTION: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Allocates a query of this many bytes of UTF-8 and returns its address.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn question(bytes: usize) -> *mut u8 {
    QUESTION.with_borrow_mut(|question| {
        question.clear();
        question.resize(bytes, 0);
        question.as_mut_ptr()
    })
}

/// Answers the query and returns the address of the answer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn answer() -> *const u8 {
    let answer = QUESTION.with_borrow(|question| super::answer(&String::from_utf8_lossy(question)));
    ANSWER.replace(answer);
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// Length of the answer in bytes.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn answer_bytes() -> usize {
    ANSWER.with_borrow(String::len)
}
