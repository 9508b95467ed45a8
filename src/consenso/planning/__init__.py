"""Planning: what a run will do, what it will cost whom, and the rules behind "auto". No data are touched here."""
