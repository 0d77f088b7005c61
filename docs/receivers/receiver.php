<?php
// Receives Bursar's webhooks. PHP 8.1 or newer, nothing to install; behind any web server, or: SECRET=<secret> php -S 127.0.0.1:<port> receiver.php

/** Standard Webhooks 1.0.0: any of the signatures may be ours, and the time must be now. */
function isGenuine(string $key, string $body): bool
{
    $id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
    $time = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    if (!ctype_digit($time) || abs(time() - (int) $time) > 300) {
        return false;
    }
    $wanted = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$time.$body", $key, true));
    foreach (explode(' ', $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '') as $given) {
        if (hash_equals($wanted, $given)) {
            return true;
        }
    }
    return false;
}

$secret = (string) getenv('SECRET');
$body = file_get_contents('php://input');
if ($secret === '' || !isGenuine(base64_decode(substr($secret, strlen('whsec_'))), $body)) {
    http_response_code(400);
    exit;
}
$event = json_decode($body, true, flags: JSON_THROW_ON_ERROR);
$object = $event['data']['object'];
$id = $object['transaction_id'] ?? $object['id'];

// of each object the highest sequence; keep it in your database, where a lock on the row does what this lock on a file does
$file = fopen(sys_get_temp_dir() . '/bursar-' . hash('sha256', $secret) . '.json', 'c+');
flock($file, LOCK_EX);
$applied = json_decode(stream_get_contents($file), true) ?? [];
// events come in any order, and some twice
if ($event['sequence'] > ($applied[$id] ?? 0)) {
    $applied[$id] = $event['sequence'];
    rewind($file);
    ftruncate($file, 0);
    fwrite($file, json_encode($applied));
    file_put_contents('php://stdout', "{$event['type']} $id is {$object['status']}\n");
}
fclose($file);
http_response_code(204);
