//! The way of a change, step by step, for one environment: git, platform, schedule, publish, pack, state.
