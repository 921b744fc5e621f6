// Package crdb stands in for CockroachDB's client helper, of which Dex uses one function.
//
// The module that Dex asks for is of a version whose own dependencies are gone. The local
// stack keeps Dex's state in SQLite, which needs none of CockroachDB's retries.
package crdb

import "database/sql"

// ExecuteTx runs fn in a transaction and commits it, or rolls it back when fn fails.
func ExecuteTx(db *sql.DB, fn func(*sql.Tx) error) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback() // the error of fn says more than that of the rollback
		return err
	}
	return tx.Commit()
}
