//! The SIPCluster controller: observe, plan, apply, status.
