module github.com/cockroachdb/cockroach-go

go 1.24.0
