//go:build tools

package geth

import _ "github.com/ethereum/go-ethereum/cmd/geth"
