-- What people were known by: whoever sets a name or an address anew doesn't make somebody else of an author.
ALTER TABLE people ADD COLUMN former TEXT NOT NULL DEFAULT '[]';  -- JSON list of {"known": name or address, "until": ms}
