package access

// SetIAPKeys has an issuer ask for the keys of the proxy elsewhere.
func SetIAPKeys(i *Issuer, url string) { i.keys = url }
