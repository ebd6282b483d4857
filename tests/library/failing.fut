-- A constant that fails, and a number that does.
def table : [100]i64 = map (\i -> i * i) (iota 100)

def beyond : [50]i64 = map (\i -> table[i + 51]) (iota 50)

def few : [3]i64 = [1, 2, 3]

def missing : i64 = few[3]

entry at (i: i64) : i64 = beyond[i]

entry last : i64 = missing

entry twice (x: i64) : i64 = 2 * x
