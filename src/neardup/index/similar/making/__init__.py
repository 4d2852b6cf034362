"""Making the arrays of a segment by similarity, part by part, in memory or in files."""
