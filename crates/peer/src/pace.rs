//! Every interval and bound of the protocol, with its reason. Times are milliseconds.

pub const SECOND: i64 = 1_000;
pub const MINUTE: i64 = 60 * SECOND;

/// With the uplink, by those that reach the hub too: two missed ones and the choice of another fit into a minute.
pub const UPLINK_EVERY: i64 = 25 * SECOND;
/// The same by all others, who hear of another uplink at once. With a fifth more, and the age of what the uplink says of itself (up to
/// 25 s), less than `FRESH`: else it would count as lost before it is asked.
pub const FOLLOW_EVERY: i64 = 50 * SECOND;
/// With some other peer: a safety net beneath what is told at once.
pub const GOSSIP_EVERY: i64 = MINUTE;
/// The same of who has what the uplink has. Most of these need a new connection, which is the dearest thing that an idle site does.
pub const GOSSIP_QUIET_EVERY: i64 = 12 * MINUTE;
/// With a second one that reaches the hub: as often as signs of life are made. They come in turn, so that the hub hears of everybody within
/// twelve minutes where the uplink lies and three of four others do.
pub const SECOND_EVERY: i64 = 2 * MINUTE;
/// The same while nobody reaches the hub: then this is how statuses get around.
pub const GOSSIP_ALONE_EVERY: i64 = 30 * SECOND;
/// News wait so long for company.
pub const NEWS_AFTER: i64 = 300;
/// How many hear of news from one agent: a site of 1,000 knows in seven steps, and no agent tells them all.
pub const FANOUT: usize = 3;
/// So many are talked to as soon as they are found.
pub const FIRST_PARTNERS: usize = 4;
/// Asked again while content is wanted.
pub const WANT_EVERY: i64 = 5 * SECOND;
/// An agent that heard the hub itself within this may carry for others; longer than it takes until those who follow it ask again.
pub const FRESH: i64 = 90 * SECOND;
/// Who reached the hub within this may be a second carrier: it says itself whether it still does.
pub const SECOND_WITHIN: i64 = 10 * MINUTE;
/// An uplink that failed `UPLINK_FAILURES` times isn't chosen for so long: by then it must have said anew that it reaches the hub.
pub const UPLINK_OUT: i64 = FRESH;
pub const UPLINK_FAILURES: u32 = 2;
/// An uplink that was heard within this isn't asked again only because another one calls.
pub const DOUBT_AFTER: i64 = 10 * SECOND;
/// An uplink that leaves a question open for so long may hang: any other one is chosen before it for `UPLINK_OUT`, or until it answers.
pub const UPLINK_ANSWERS: i64 = 8 * SECOND;
/// Signs of life go to the hub together.
pub const CARRY_EVERY: i64 = 10 * SECOND;
/// Documents wait so long for a newer one of the same name before they go up: a change writes several, and the uplink may be thin.
pub const UPLOAD_AFTER: i64 = 5 * SECOND;
/// After the first failure; doubled by each further one.
pub const BACKOFF_FIRST: i64 = 5 * SECOND;
pub const BACKOFF_MOST: i64 = 10 * MINUTE;
/// An exchange without an end is a failed one.
pub const EXCHANGE_MOST: i64 = MINUTE;
/// For its first misbehavior; doubled by each further one.
pub const DROPPED_FIRST: i64 = 10 * MINUTE;
pub const DROPPED_MOST: i64 = 120 * MINUTE;
/// What was refused isn't asked for again so soon: a clone's document, say.
pub const REFUSED_FOR: i64 = 10 * MINUTE;

/// Exchanges of one agent at a time.
pub const MAX_IN_FLIGHT: usize = 4;
/// More than one LAN has; the oldest strangers go.
pub const MAX_PEERS: usize = 1_024;
/// What a person is shown of a misbehaving peer.
pub const MAX_LIES: usize = 8;
/// Messages of one peer in a minute. A busy honest one sends some dozens.
pub const MESSAGES_PER_MINUTE: u32 = 240;
/// Refused names that are remembered.
pub const MAX_REFUSED: usize = 256;

/// Names in a store: memberships, statuses, turns and holds of a thousand clusters.
pub const MAX_NAMES: usize = 4_096;
/// Bytes in a store.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Sets of the chain that are kept for those who were away.
pub const MAX_KEY_SETS: usize = 64;
/// A document's payload.
pub const MAX_STATE: usize = kedge_model::wire::site::MAX_STATE;
pub const MAX_KEY_SET: usize = 64 * 1024;
pub const MAX_MEMBERSHIP: usize = 64 * 1024;
/// One stream's name and a few numbers.
pub const MAX_TURN: usize = 4 * 1024;
/// A thousand holds with their reasons.
pub const MAX_HOLDS: usize = 256 * 1024;
/// A poll's worth of words.
pub const MAX_PRESENCE: usize = 8 * 1024;
