//! Batches: operations handed over together, carried out first to last.

use crate::op::Op;
use std::collections::VecDeque;

/// Operations a program hands over at once. The queue is reused, so it stops allocating once it has
/// grown. Dozens of operations save as much as thousands, and keep the reported progress accurate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    ops: VecDeque<Op>,
}

impl Batch {
    /// Makes a batch without operations.
    pub fn new() -> Batch {
        Batch::default()
    }
    /// Adds an operation, to be carried out after those already here.
    #[inline]
    pub fn push(&mut self, op: Op) {
        self.ops.push_back(op);
    }
    /// Takes out the operation to carry out next.
    #[inline]
    pub fn pop(&mut self) -> Option<Op> {
        self.ops.pop_front()
    }
    /// The operation that is carried out after `n` others.
    #[inline]
    pub fn ahead(&self, n: usize) -> Option<&Op> {
        self.ops.get(n)
    }
    /// Whether nothing is left to carry out.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
    /// How many operations are left.
    pub fn len(&self) -> usize {
        self.ops.len()
    }
}

impl Extend<Op> for Batch {
    fn extend<I: IntoIterator<Item = Op>>(&mut self, ops: I) {
        self.ops.extend(ops);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_leave_a_batch_in_the_order_they_entered() {
        let mut batch = Batch::new();
        batch.push(Op::Sleep(1));
        batch.extend([Op::Sleep(2), Op::Sleep(3)]);
        assert_eq!(batch.pop(), Some(Op::Sleep(1)));
        batch.push(Op::Sleep(4));
        assert_eq!(batch.len(), 3);
        assert_eq!(
            [batch.pop(), batch.pop(), batch.pop(), batch.pop()],
            [2, 3, 4, 0].map(|n| (n > 0).then_some(Op::Sleep(n)))
        );
        assert!(batch.is_empty());
    }
}
