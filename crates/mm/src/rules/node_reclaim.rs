//! Rules of node reclaim, by which a request reclaims on a near node before it takes from another.

use super::rule::mechanism;

mechanism! {
    /// With `vm.zone_reclaim_mode` a request reclaims on a near node before it tries the next.
    pub struct NodeReclaimRules for "node_reclaim" {
        /// There is `vm.zone_reclaim_mode`, for a node as a whole. Kernels up to 4.7 have it for
        /// each zone, and with a memory of full zones, which is not modelled.
        #[rule(section = "4.13")]
        pub modelled: bool,
        /// Only its bits for reclaiming, writing and unmapping switch it on; before, any number
        /// did.
        #[rule(section = "4.13")]
        pub knows_its_bits: bool,
        /// Reclaimable slab above `vm.min_slab_ratio` is reason enough to reclaim; before, a node
        /// with no more than that of files was chosen for it and then left alone.
        #[rule(section = "4.13")]
        pub slab_is_enough: bool,
        /// Dirty pages of files never count as reclaimable; before, they did where the mode allows
        /// writing.
        #[rule(section = "4.13")]
        pub dirty_never_counts: bool,
        /// Reclaims that freed enough for the block are counted (`zone_reclaim_success`), not only
        /// those that did not.
        #[rule(section = "4.13")]
        pub counts_success: bool,
    }
}
