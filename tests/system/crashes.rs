//! The manager killed in the middle of claims and releases.

use std::{thread, time::Duration};

use crate::{
    hosts::{self, RELEASED},
    manager::{kill, leader, quarantine},
    sip::{self, NAMESPACE, SETTLES, gone},
    stack::{Restore, create, kubectl, until},
};

#[test]
fn a_manager_killed_at_any_moment_loses_no_host_and_claims_none_twice() {
    sip::edge();
    let edge = hosts::labelled("edge");
    let _quarantine = Restore(|| quarantine(60));
    quarantine(1);
    let burst = sip::workers("burst", 1);
    // The moments are the subject: from before the choice is recorded until after the labels are on.
    for (turn, after) in
        [0, 50, 100, 200, 300, 400, 600, 900, 1200, 1800].map(Duration::from_millis).into_iter().enumerate()
    {
        // Somebody leads, and so has to lose something, whenever the clock starts.
        leader();
        create(&burst).success();
        let _gone = Restore(|| {
            let _ =
                kubectl(&format!("delete sipcluster burst --namespace={NAMESPACE} --ignore-not-found --timeout=180s"));
        });
        thread::sleep(after);
        kill();
        let sip = sip::ready("burst");
        let held = hosts::labelled("burst");
        assert_eq!(held.len(), 1, "turn {turn}: {held:?}");
        let recorded = sip["status"]["hosts"].as_array().unwrap();
        assert_eq!(recorded.len(), 1, "turn {turn}: {recorded:?}");
        assert!(held.contains(recorded[0]["name"].as_str().unwrap()), "turn {turn}: {held:?} but {recorded:?}");

        leader();
        kubectl(&format!("delete sipcluster burst --namespace={NAMESPACE} --wait=false")).success();
        thread::sleep(after);
        kill();
        gone("burst");
        assert!(hosts::labelled("burst").is_empty(), "turn {turn}: labels outlive the cluster");
        assert_eq!(hosts::labelled("edge"), edge, "turn {turn}: another cluster's hosts");
        let name = held.first().unwrap();
        until(&format!("{name} is out of quarantine"), SETTLES, || {
            let released = hosts::host(name)["metadata"]["annotations"][RELEASED].clone();
            if released.is_null() { Ok(()) } else { Err(released.to_string()) }
        });
    }
    sip::edge();
}
