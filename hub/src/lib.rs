//! The hub: reads Git, schedules, publishes, packs, signs, enrols agents, serves desired states and takes in status.
