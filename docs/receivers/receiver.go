// Receives Bursar's webhooks. Go 1.21 or newer, nothing to install: go run receiver.go <port> <secret>
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Standard Webhooks 1.0.0: any of the signatures may be ours, and the time must be now.
func isGenuine(key []byte, headers http.Header, body []byte) bool {
	sent := headers.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(sent, 10, 64)
	if err != nil || math.Abs(time.Since(time.Unix(seconds, 0)).Seconds()) > 300 {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", headers.Get("webhook-id"), sent, body)
	wanted := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for _, given := range strings.Split(headers.Get("webhook-signature"), " ") {
		if hmac.Equal(wanted, []byte(given)) {
			return true
		}
	}
	return false
}

type event struct {
	Type     string
	Sequence int
	Data     struct {
		Object struct {
			ID            string
			TransactionID string `json:"transaction_id"`
			Status        string
		}
	}
}

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Args[2], "whsec_"))
	if err != nil {
		log.Fatal(err)
	}
	var lock sync.Mutex
	applied := map[string]int{} // of each object the highest sequence; keep it in your database
	http.HandleFunc("/", func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(io.LimitReader(request.Body, 1<<20))
		var got event
		if err != nil || !isGenuine(key, request.Header, body) || json.Unmarshal(body, &got) != nil {
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		id := got.Data.Object.TransactionID + got.Data.Object.ID
		lock.Lock()
		defer lock.Unlock()
		// events come in any order, and some twice
		if got.Sequence > applied[id] {
			applied[id] = got.Sequence
			fmt.Printf("%s %s is %s\n", got.Type, id, got.Data.Object.Status)
		}
		response.WriteHeader(http.StatusNoContent)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
