//! Two buffers that the page reads and writes: texts into the module, and out of it.
#![allow(
    unsafe_code,
    reason = "names for the page to call; nothing in here reads raw memory"
)]

use std::cell::RefCell;

thread_local! {
    static QUESTION: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes room for a question of so many bytes of UTF-8, and says where.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn question(bytes: usize) -> *mut u8 {
    QUESTION.with_borrow_mut(|question| {
        question.clear();
        question.resize(bytes, 0);
        question.as_mut_ptr()
    })
}

/// Answers the question, and says where.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn answer() -> *const u8 {
    let answer = QUESTION.with_borrow(|question| super::answer(&String::from_utf8_lossy(question)));
    ANSWER.replace(answer);
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// The bytes of the answer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn answer_bytes() -> usize {
    ANSWER.with_borrow(String::len)
}
