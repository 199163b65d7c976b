//! Tests of the tables: what files hold, and that the page describes it.

mod page;
mod written;
