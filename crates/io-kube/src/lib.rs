//! Everything that talks to the Kubernetes API: apply, prune, status, events, lease, watches, and the metrics and health server.
