module driver

go 1.22

require github.com/vesta-id/vesta/clients/go v0.0.0

replace github.com/vesta-id/vesta/clients/go => ../../../../clients/go
