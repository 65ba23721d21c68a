//! What people and programs ask: `/api/v1`, webhooks, health and metrics.
