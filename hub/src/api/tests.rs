//! The router in memory over a real SQLite file, with fakes for the other rooms.

mod fixture;
mod roles;
mod routes;
mod watching;
