"""The index: "have I seen this?", in memory and durable."""
