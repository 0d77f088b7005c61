//go:build tools

// Package bchd pins the version of bchd, and of all that it is built from, that the tests run against.
package bchd

import _ "github.com/gcash/bchd"
