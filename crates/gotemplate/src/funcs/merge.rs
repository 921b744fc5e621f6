//! sprig's merge and mergeOverwrite, with the rules of the library behind them (mergo 1.0).

use super::{Func, Param, dict};
use crate::ctx::{Ctx, Outcome};
use crate::value::{Dict, Elem, Value};

const DICT: Param = Param::Dict;

pub(super) const TABLE: &[Func] = &[
    Func::new("merge", &[DICT], |ctx, v| merge_all(ctx, v, false)).and_more(DICT),
    Func::new("mustMerge", &[DICT], |ctx, v| merge_all(ctx, v, false)).and_more(DICT),
    Func::new("mergeOverwrite", &[DICT], |ctx, v| merge_all(ctx, v, true)).and_more(DICT),
    Func::new("mustMergeOverwrite", &[DICT], |ctx, v| merge_all(ctx, v, true)).and_more(DICT),
];

/// Merges all into the first, which is changed in place.
fn merge_all(ctx: &mut Ctx, values: &[Value], overwrite: bool) -> Outcome<Value> {
    let target = match dict(&values[0]) {
        Some(dict) => dict.clone(),
        None => ctx.dict(Elem::Any, std::collections::BTreeMap::new())?,
    };
    for source in values[1..].iter().filter_map(dict) {
        merge(ctx, &target, source, overwrite)?;
    }
    Ok(Value::Dict(target))
}

fn merge(ctx: &mut Ctx, target: &Dict, source: &Dict, overwrite: bool) -> Outcome<()> {
    ctx.enter()?;
    for (key, value) in source.snapshot(ctx)? {
        if value.is_nothing() {
            // A null neither fills a gap nor is merged; only overwriting takes it over.
            if overwrite {
                target.insert(key, value);
            }
            continue;
        }
        let old = target.get(&key);
        if let (Some(Value::Dict(old)), Value::Dict(new)) = (&old, &value) {
            if old.elem() != new.elem() {
                return Err("cannot merge dicts of different types".into());
            }
            merge(ctx, old, new, overwrite)?;
            if old.len() > 0 {
                continue;
            }
        }
        // Empty values (false, 0, "") count as gaps too.
        if overwrite || !old.is_some_and(|old| old.truth()) {
            target.insert(key, value);
        }
    }
    ctx.leave();
    Ok(())
}
