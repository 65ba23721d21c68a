//! Status documents: what is true on a cluster, as automerge documents in signed envelopes. Written by agents, read by the hub.
